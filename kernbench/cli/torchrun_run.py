"""Runs a simulation on processes that torchrun has started: `KERNBENCH_RUN=run torchrun ...`.

The worker of rank 0 is the coordinator, and the process of SIP 0 is its child. The worker of any
other rank becomes the process of its SIP: it keeps its id, and torchrun its output. They meet in a
store, which holds the endpoint of the coordinator and the process ids of the workers.
"""

import os
import shlex
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol, Self

from coordinator.launch import Launch
from coordinator.launcher import (
    UNKNOWN_EXIT,
    Child,
    InterpreterLauncher,
    LpSpec,
    joining_arguments,
    lp_environment,
)
from kernbench.cli.main import main
from kernbench.cli.own_process import own_process
from runtime.core.wallclock import now_s, sleep_s
from runtime.wire.environment import RUN_DIRECTORY, TORCHRUN_RUN
from runtime.wire.run_id import run_id_pipe

_RUN = "kernbench/run"
_PROCESS = "kernbench/process/{}"
_LOOK_S = 0.02
"""Time between two looks at a process that is no child."""


class Store(Protocol):
    """What the workers share, as the stores of PyTorch."""

    def set(self, key: str, value: str, /) -> None:
        """Write a value."""
        ...

    def get(self, key: str, /) -> bytes:
        """Read a value, after a wait until it is there."""
        ...


@dataclass(frozen=True)
class Worker:
    """A worker of torchrun: its rank, the options of the run, and what it runs.

    `command` is the end of a command line: a script, or `-m` and a module, and the arguments.
    """

    rank: int
    world_size: int
    options: tuple[str, ...]
    command: tuple[str, ...]

    @classmethod
    def of(cls, environment: Mapping[str, str], command: Sequence[str]) -> Self:
        """The worker with these variables of torchrun; `SystemExit` where it cannot take part."""
        text = environment[TORCHRUN_RUN]
        try:
            name, *options = shlex.split(text)
        except ValueError:
            name, options = "", []
        if name != "run":
            sys.exit(
                f"kernbench: error: {TORCHRUN_RUN} is {text!r}: expected 'run', or 'run' with "
                "options, such as 'run --topology big.yaml'"
            )
        world_size = int(environment["WORLD_SIZE"])
        if int(environment["LOCAL_WORLD_SIZE"]) != world_size:
            sys.exit(
                f"kernbench: error: torchrun starts workers on several hosts, and all SIPs of a "
                f"run are simulated on one: torchrun --nproc-per-node {world_size}"
            )
        return cls(int(environment["RANK"]), world_size, tuple(options), tuple(command))


def coordinate(worker: Worker, store: Store) -> int:
    """Coordinate the run from the worker of rank 0; returns the exit code."""
    # torchrun sends SIGTERM to all workers as soon as one ends. The run notices that itself, and
    # the cause is yet to be printed.
    signal.signal(signal.SIGTERM, _ignored)
    launch = Launch(WorkerLauncher(store))
    where = (launch.directory.control_endpoint, launch.run_id, str(launch.directory.path))
    store.set(_RUN, "\n".join(where))
    ranks = ("--nproc-per-node", str(worker.world_size))
    with own_process():
        return main(["run", *worker.options, *ranks, *worker.command], launch)


def _ignored(_signum: int, _frame: FrameType | None) -> None:
    """Not `SIG_IGN`, which child processes would inherit."""


def take_part(worker: Worker, store: Store) -> NoReturn:
    """Become the process of an LP: this program is replaced."""
    store.set(_PROCESS.format(worker.rank), str(os.getpid()))
    endpoint, run_id, directory = store.get(_RUN).decode().split("\n")
    variables = lp_environment(os.environ) | {RUN_DIRECTORY: directory}
    sys.stdout.flush()
    sys.stderr.flush()
    with run_id_pipe(run_id) as file:
        os.set_inheritable(file, True)  # noqa: FBT003 - positional only
        arguments = joining_arguments(endpoint, file, worker.rank)
        command = [*InterpreterLauncher().command, *arguments]
        os.execve(command[0], command, variables)  # noqa: S606 - our own command


@dataclass(frozen=True)
class WorkerLauncher:
    """LP 0 is a child of this process, every other LP a worker of torchrun."""

    store: Store

    def start(self, spec: LpSpec) -> Child:
        """Start LP 0, or wait until the worker of another one has reported its process."""
        if spec.lp == 0:
            # torchrun sends its signals to the group of this process.
            return InterpreterLauncher(own_group=True).start(spec)
        return _WorkerProcess(int(self.store.get(_PROCESS.format(spec.lp))))


class _WorkerProcess:
    """A process that torchrun has started, and of which torchrun gets the exit code."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._gone = False

    def wait(self, timeout_s: float) -> int | None:
        deadline_s = now_s() + timeout_s
        while not self._has_gone():
            if now_s() >= deadline_s:
                return None
            sleep_s(_LOOK_S)
        return UNKNOWN_EXIT

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def _has_gone(self) -> bool:
        if not self._gone:
            # From then on, the number may be that of another process.
            self._gone = not _runs(self.pid)
        return self._gone

    def _signal(self, signum: int) -> None:
        if not self._has_gone():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signum)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A process that has ended exists until torchrun reads its exit code, which may take long.
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
        return state[0] != "Z"
    return True
