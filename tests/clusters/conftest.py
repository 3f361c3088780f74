"""Clusters of two workers on this machine, one of Dask and one of Ray, for all tests."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest

from tests.support.clusters import point_processes
from tests.support.runs import ROOT

MEMORY_MIB = 768
"""Memory of a worker of Dask, which has one thread."""


class Cluster(NamedTuple):
    """The name of its executor, and what marks the environment of its processes."""

    on: str
    mark: str
    processes: tuple[subprocess.Popen, ...]

    def kill_a_worker(self) -> None:
        """Kill a worker that measures a point: the parent of its point process."""
        os.kill(min(point_processes(self.mark).values()), 9)


def _environment(mark: str) -> dict[str, str]:
    ours = {"PYTHONPATH": str(ROOT), "KERNBENCH_TEST_CLUSTER": mark, "RAY_USAGE_STATS_ENABLED": "0"}
    return os.environ | ours


@contextmanager
def _ended(processes: list[subprocess.Popen]) -> Generator[None]:
    try:
        yield
    finally:
        # Workers before their scheduler: without it they would try to connect again.
        for process in reversed(processes):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextmanager
def _folder() -> Generator[Path]:
    # Short: Ray has sockets below it.
    folder = Path(tempfile.mkdtemp(prefix="kb-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def dask_cluster(workers: int = 2) -> Generator[Cluster]:
    """A scheduler and workers, each a process with one thread."""
    distributed = pytest.importorskip("distributed")
    mark = uuid4().hex
    with _folder() as folder, (folder / "log").open("w") as log:
        file = folder / "scheduler.json"
        common = ("--scheduler-file", str(file), "--no-dashboard", "--host", "127.0.0.1")
        of_workers = ("--nthreads", "1", "--memory-limit", f"{MEMORY_MIB}MiB")
        commands = [("dask_scheduler", *common, "--port", "0")]
        commands += [
            ("dask_worker", *common, *of_workers, "--local-directory", str(folder))
        ] * workers
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]],
                stdout=log,
                stderr=log,
                env=_environment(mark),
            )
            for command in commands
        ]
        with _ended(processes):
            with distributed.Client(scheduler_file=str(file), timeout=60) as client:
                client.wait_for_workers(workers, timeout=60)
                address = client.scheduler.address
            yield Cluster(f"dask:{address}", mark, tuple(processes))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextmanager
def ray_cluster() -> Generator[Cluster]:
    """A node with two cores. Its processes end with `ray start --block`; `ray stop` would end those
    of other clusters of this machine, too.
    """
    pytest.importorskip("ray")
    mark, port, client_port = uuid4().hex, _free_port(), _free_port()
    options = {
        "num-cpus": 2,
        "port": port,
        "ray-client-server-port": client_port,
        "min-worker-port": 0,
        "max-worker-port": 0,
        "include-dashboard": "false",
        "node-ip-address": "127.0.0.1",
        "object-store-memory": 80_000_000,
    }
    with _folder() as folder:
        words = [f"--{name}={value}" for name, value in options.items()]
        command = ["from ray.scripts.scripts import main; main()", "start", "--head", "--block"]
        process = subprocess.Popen(
            [sys.executable, "-c", *command, *words, f"--temp-dir={folder}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=_environment(mark),
        )
        assert process.stdout is not None
        with _ended([process]), process.stdout:
            printed = []
            for line in process.stdout:
                printed.append(line)
                if "Ray runtime started" in line:
                    break
            else:
                pytest.fail("".join(printed))
            yield Cluster(f"ray:127.0.0.1:{port}", mark, (process,))


CLUSTERS: dict[str, Callable] = {"dask": dask_cluster, "ray": ray_cluster}


@pytest.fixture(scope="session", params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster of each kind; tests kill its workers, which the cluster replaces."""
    with CLUSTERS[request.param]() as started:
        yield started
