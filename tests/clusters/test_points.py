"""A study of 24 points on clusters with deaths: no row is lost, and all bytes are equal."""

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernbench.points.executors import open_executor
from tests.clusters.conftest import Cluster
from tests.support.runs import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]

STUDY = "milestone-1h-gemm"
POINTS = 24
SHOWN = re.compile(
    rf"\d+/{POINTS}  .*|kernbench: note: .*|.*: its worker has died \(.*\); once more"
    r"|\[.* network_util\.cc:\d+: Failed to determine local IP .*"
)
"""Lines of a study on the standard error: none of Dask, and one of Ray where there is no route to
other networks, as in these tests."""


@contextmanager
def _study(on: str, out: Path) -> Generator[subprocess.Popen[str]]:
    command = [sys.executable, ROOT / "launch.py", "--bench", STUDY, "--on", on, "--out", out]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=out.parent
    ) as driver:
        try:
            yield driver
        finally:
            driver.kill()


def _measured(on: str, out: Path, then: dict[int, Callable[[subprocess.Popen], None]]) -> list[str]:
    """The lines of a study; `then` is done when as many points are complete."""
    lines = []
    with _study(on, out) as driver:
        assert driver.stderr is not None
        for line in driver.stderr:
            lines.append(line.rstrip())
            count = line.partition(f"/{POINTS}  ")[0]
            if count.isdecimal() and int(count) in then:
                then[int(count)](driver)
        driver.wait()
        lines.append(f"exit code {driver.returncode}")
    return lines


def _files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of the study on this machine."""
    folder = tmp_path_factory.mktemp("local") / "out"
    assert _measured("local", folder, {})[-1] == "exit code 0"
    return _files(folder)


def test_a_study_survives_its_worker_and_its_driver(
    cluster: Cluster, tmp_path: Path, undisturbed: dict[str, bytes]
):
    out = tmp_path / "out"
    first = _measured(
        cluster.on,
        out,
        {POINTS // 3: lambda _: cluster.kill_a_worker(), 2 * POINTS // 3: subprocess.Popen.kill},
    )
    assert first[-1] == f"exit code {-signal.SIGKILL}"
    second = _measured(cluster.on, out, {})
    assert second[-1] == "exit code 0"
    assert f"{POINTS}/{POINTS}  " in second[-2]
    kept = int(re.search(r"note: (\d+) of 24 rows", second[0])[1])
    assert kept >= 2 * POINTS // 3
    assert [line for line in first[:-1] + second[:-1] if not SHOWN.fullmatch(line)] == []
    assert _files(out) == undisturbed


def test_ctrl_c_keeps_the_rows_and_frees_the_cluster(cluster: Cluster, tmp_path: Path):
    lines = _measured(
        cluster.on, tmp_path / "out", {2: lambda driver: driver.send_signal(signal.SIGINT)}
    )
    assert lines[-1] == "exit code 130"
    # The line of the terminal with ^C ends.
    assert [line for line in lines[:-1] if line and not SHOWN.fullmatch(line)] == []
    assert "the same command goes on from there" in "\n".join(lines)
    with open_executor(cluster.on, 2) as executor:
        assert executor.submit(pow, 2, 5).result() == 32


@pytest.fixture(scope="session")
def searched() -> str:
    """Output of the example on this machine; the last machines depend on earlier results."""
    return _search("local")


def test_a_search_proposes_the_same_machines_on_every_executor(cluster: Cluster, searched: str):
    assert "best: " in searched
    assert _search(cluster.on) == searched


def _search(on: str) -> str:
    pytest.importorskip("optuna")
    program = ROOT / "examples" / "search_optuna.py"
    return subprocess.run(
        [sys.executable, program, "--on", on, "--trials", "13"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
