"""A worker of torchrun: whether and as what it takes part in a run."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.launcher import UNKNOWN_EXIT, Child, LpSpec
from kernbench.cli.torchrun_run import Worker, WorkerLauncher

VARIABLES = {
    "KERNBENCH_RUN": "run --topology 'my file.yaml'",
    "RANK": "1",
    "WORLD_SIZE": "4",
    "LOCAL_WORLD_SIZE": "4",
}
SPEC = LpSpec("ipc://control", "0123", 1, lone=False, directory=Path(), coordinator_pid=1)


class Stored:
    def __init__(self, value: str) -> None:
        self.value = value

    def get(self, key: str) -> bytes:
        assert key == "kernbench/process/1"
        return self.value.encode()

    def set(self, key: str, value: str) -> None:
        raise AssertionError((key, value))


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    code = "import sys; sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as started:
        yield started


@pytest.fixture
def child(process: "subprocess.Popen[bytes]") -> Child:
    return WorkerLauncher(Stored(str(process.pid))).start(SPEC)


def test_the_variables_of_torchrun_and_of_the_user_make_a_worker():
    worker = Worker.of(VARIABLES, ["train.py", "--steps", "3"])
    assert worker.options == ("--topology", "my file.yaml")
    assert (worker.rank, worker.world_size) == (1, 4)


@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({"KERNBENCH_RUN": "perf all_reduce"}, "expected 'run', or 'run' with options"),
        ({"KERNBENCH_RUN": "run 'open"}, "expected 'run', or 'run' with options"),
        ({"LOCAL_WORLD_SIZE": "2"}, "torchrun --nproc-per-node 4"),
    ],
)
def test_a_worker_that_cannot_take_part_ends_with_the_reason(variables: dict[str, str], line: str):
    with pytest.raises(SystemExit, match=line):
        Worker.of(VARIABLES | variables, ["train.py"])


def test_a_process_of_torchrun_has_ended_before_torchrun_has_its_exit_code(
    process: "subprocess.Popen[bytes]", child: Child
):
    assert child.wait(0.0) is None
    assert process.stdin is not None
    process.stdin.close()
    # Its parent, this test, has not read the exit code yet.
    assert child.wait(10.0) == UNKNOWN_EXIT
    assert process.wait() == 0
    child.kill()


def test_a_process_of_torchrun_can_be_ended(process: "subprocess.Popen[bytes]", child: Child):
    child.terminate()
    assert child.wait(10.0) == UNKNOWN_EXIT
    assert process.wait() == -signal.SIGTERM
