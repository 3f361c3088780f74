"""Executors of clusters: results, errors, losses, and what remains after them."""

import threading
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, wait
from pathlib import Path
from socket import create_server

import pytest

from kernbench.points.cluster_future import LostWorkerError
from kernbench.points.driver import PointOptions, measured_points
from kernbench.points.executors import open_executor
from kernbench.points.task import PointFault
from runtime.core.errors import ConfigError, UsageError
from runtime.core.wallclock import sleep_s
from tests.clusters.conftest import MEMORY_MIB, Cluster, dask_cluster
from tests.support.clusters import (
    killing_its_worker,
    raising_of_a_file,
    squared_after_the_death_of_its_worker,
    waiting_for_a_file,
)
from tests.support.points import NumberPoint, hungry, measurement, squared

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def printed(capfd: pytest.CaptureFixture[str]) -> tuple[str, list[str]]:
    """The standard output, and the lines of errors but one: Ray notices that the namespace of the
    tests has no other address than that of the loopback.
    """
    out, errors = capfd.readouterr()
    return out, [each for each in errors.splitlines() if "determine local IP" not in each]


def test_tasks_have_results_and_errors_of_their_types(cluster: Cluster):
    with open_executor(cluster.on, 2) as executor:
        assert [executor.submit(pow, 2, 5).result() for _ in range(2)] == [32, 32]
        with pytest.raises(ConfigError, match=r"a\.yaml: ucie: unknown key"):
            executor.submit(raising_of_a_file, "a.yaml").result()


def test_a_worker_that_dies_is_a_loss_of_one_task(cluster: Cluster, tmp_path: Path):
    deaths = tmp_path / "deaths"
    with open_executor(cluster.on, 2) as executor:
        with pytest.raises(LostWorkerError) as raised:
            executor.submit(killing_its_worker, deaths).result()
        assert executor.submit(pow, 2, 5).result() == 32
    # Dask's scheduler tries a task on four workers, and has no option for it.
    assert raised.value.tries == (4 if "dask" in cluster.on else 1)
    assert deaths.read_text().count("\n") == raised.value.tries


def test_what_is_cancelled_leaves_the_workers_free(cluster: Cluster, tmp_path: Path):
    with open_executor(cluster.on, 2) as executor:
        # Dask cannot end a function that runs in a thread, which waits here for a file.
        started, end = tmp_path / "started", tmp_path / "end"
        futures = [executor.submit(waiting_for_a_file, started, end)]
        while not started.exists():
            sleep_s(0.02)
        futures += [executor.submit(waiting_for_a_file, tmp_path / "2", end) for _ in range(6)]
        assert all(future.cancel() for future in futures)
        if "dask" in cluster.on:
            end.touch()
        assert [executor.submit(pow, 2, 5).result(30) for _ in range(4)] == [32] * 4
        end.touch()
        both = [executor.submit(sleep_s, 0.5) for _ in range(2)]
        assert not wait(both, 30).not_done


def test_neither_threads_nor_lines_are_left(
    cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    before = set(threading.enumerate())
    with open_executor(cluster.on, 2) as executor:
        wait([executor.submit(killing_its_worker, tmp_path / "deaths"), executor.submit(pow, 2, 5)])
    assert set(threading.enumerate()) <= before
    assert printed(capfd) == ("", [])


def test_a_point_has_the_memory_of_its_worker():
    with dask_cluster(workers=1) as cluster:
        points = [NumberPoint(number) for number in (1, 3)]
        found = measured_points(measurement(hungry), points, PointOptions(cluster.on))
    reason = f"out of memory: it needs more than {MEMORY_MIB} MiB (--point-memory)"
    assert found == {points[0]: squared(points[0]), points[1]: PointFault("number 3", reason)}


def test_a_scheduler_that_is_gone_breaks_the_executor_in_silence(
    capfd: pytest.CaptureFixture[str],
):
    with dask_cluster(workers=1) as cluster, open_executor(cluster.on, 1) as executor:
        futures = [executor.submit(sleep_s, 600) for _ in range(2)]
        cluster.processes[0].kill()
        for future in futures:
            with pytest.raises(BrokenExecutor, match=r"the scheduler at .* is gone"):
                future.result()
    assert printed(capfd) == ("", [])


def test_a_pool_that_breaks_with_its_worker_is_opened_again(tmp_path: Path):
    pytest.importorskip("loky")
    points = [NumberPoint(number, str(tmp_path)) for number in range(1, 7)]
    measured = measured_points(
        measurement(squared_after_the_death_of_its_worker),
        points,
        PointOptions("tests.support.clusters:loky_pool"),
    )
    assert measured == {point: squared(point) for point in points}
    assert (tmp_path / "death").exists()


@pytest.fixture
def silent_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server that accepts connections, and sends nothing."""
    for engine in ("dask", "ray"):
        pytest.importorskip({"dask": "distributed", "ray": "ray"}[engine])
        monkeypatch.setattr(f"kernbench.points.{engine}_executor._ANSWER_S", 1)
    with create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("on", "text"),
    [
        ("dask:SERVER", "no scheduler of Dask answers: another server has the address"),
        ("dask:127.0.0.1:1", "no scheduler of Dask answers: Timed out"),
        ("dask:x://y", "unknown address scheme 'x'"),
        ("dask:none.json", "cannot read the scheduler file: No such file"),
        ("ray:SERVER", "no Ray cluster answers within 1 s"),
        ("ray:127.0.0.1:1", "no answer from 127.0.0.1:1: .* refused"),
        ("ray:127.0.0.1", "expected ray:auto, ray:HOST:PORT or ray:ray://HOST:PORT"),
    ],
)
def test_an_address_without_a_cluster_is_refused_in_one_line(
    on: str, text: str, silent_server: str, capfd: pytest.CaptureFixture[str]
):
    before = set(threading.enumerate())
    on = on.replace("SERVER", silent_server)
    with pytest.raises(UsageError, match=f"^--on {on}: {text}.*$"), open_executor(on, 1):
        pytest.fail("it has been opened")
    assert set(threading.enumerate()) <= before
    assert printed(capfd) == ("", [])
