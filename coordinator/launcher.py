"""How LPs become processes: fresh interpreters for benches and scripts, spawned children for functions of the caller."""

import os
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from coordinator.relay import Relay
from runtime.wire.environment import COORDINATOR_PID, RUN_DIRECTORY

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

_TERMINATE_S = 1.0
_KILL_S = 1.0
_MASTER_PORT = "29500"


@dataclass(frozen=True)
class LpSpec:
    """The place of one LP in a run, as its process is told it."""

    control_endpoint: str
    run_id: str
    lp: int
    sips: tuple[int, ...]
    world_size: int
    directory: Path
    coordinator_pid: int

    @property
    def environment(self) -> dict[str, str]:
        """What to add to the environment: the lifeline's facts and, where the LP is one rank, what torchrun would set."""
        lifeline = {COORDINATOR_PID: str(self.coordinator_pid), RUN_DIRECTORY: str(self.directory)}
        if len(self.sips) != 1:
            return lifeline
        rank = str(self.sips[0])
        return lifeline | {
            "RANK": rank,
            "LOCAL_RANK": rank,
            "WORLD_SIZE": str(self.world_size),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": _MASTER_PORT,
        }


class Child(Protocol):
    """The process of one LP."""

    @property
    def pid(self) -> int:
        """Its process id."""
        ...

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, -n after signal n, or None when it still runs after `timeout_s`."""
        ...

    def terminate(self) -> None:
        """Ask it to end."""
        ...

    def kill(self) -> None:
        """End it."""
        ...


class Launcher(Protocol):
    """Starts the process of an LP."""

    def start(self, seat: LpSpec) -> Child:
        """Start the LP at `seat`."""
        ...


@dataclass(frozen=True)
class InterpreterLauncher:
    """Every LP is a fresh interpreter that runs `command`, by default `python -P -m sip_node`.

    `-P` keeps the working directory off the import path: a user's `runtime.py` there must not shadow ours.
    """

    command: tuple[str, ...] = (sys.executable, "-P", "-m", "sip_node")

    def start(self, seat: LpSpec) -> Child:
        """Start the LP at `seat`."""
        arguments = [
            "--connect",
            seat.control_endpoint,
            "--run-id",
            seat.run_id,
            "--lp",
            str(seat.lp),
        ]
        # Into a pipe Python prints in blocks: a rank's lines are to be seen when they are printed.
        environment = _with_import_path(os.environ) | seat.environment | {"PYTHONUNBUFFERED": "1"}
        # A lone LP keeps the terminal: it is the debugger's mode.
        lone = len(seat.sips) == seat.world_size
        stdin, stdout = (None, None) if lone else (subprocess.DEVNULL, subprocess.PIPE)
        with _interrupts_blocked():
            process = subprocess.Popen(  # noqa: S603 - our own command
                [*self.command, *arguments],
                env=environment,
                stdin=stdin,
                stdout=stdout,
                stderr=stdout,
            )
        return _Interpreter(process)


class _Interpreter:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._relay = (
            Relay(process.stdout, process.stderr) if process.stdout and process.stderr else None
        )
        self.pid = process.pid

    def wait(self, timeout_s: float) -> int | None:
        try:
            code = self._process.wait(max(0.0, timeout_s))
        except subprocess.TimeoutExpired:
            return None
        if self._relay:
            self._relay.drain()
        return code

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


@dataclass(frozen=True)
class SpawnLauncher:
    """Every LP is a child of multiprocessing's spawn method that calls `function(rank, *args)` for each of its ranks.

    The function goes through the private pipe between parent and child. `entry` names what the child calls with
    `(endpoint, run id, lp, function, args)`: this package does not import the LP's side.
    """

    function: Callable[..., object]
    args: tuple[object, ...]
    daemon: bool = False
    entry: str = "sip_node.__main__:enter"

    def start(self, seat: LpSpec) -> Child:
        """Start the LP at `seat`."""
        import multiprocessing

        process = multiprocessing.get_context("spawn").Process(
            target=_enter,
            args=(self.entry, seat, self.function, self.args),
            name=f"LP {seat.lp}",
            daemon=self.daemon,
        )
        with _interrupts_blocked():
            process.start()
        return _Spawned(process)


def _enter(
    entry: str, seat: LpSpec, function: Callable[..., object], args: tuple[object, ...]
) -> None:
    os.environ.update(seat.environment)
    module, _, name = entry.partition(":")
    enter: Callable[..., int] = getattr(import_module(module), name)
    sys.exit(enter(seat.control_endpoint, seat.run_id, seat.lp, function, args))


class _Spawned:
    def __init__(self, process: "BaseProcess") -> None:
        assert process.pid is not None, "the process has been started"
        self._process = process
        self.pid = process.pid

    def wait(self, timeout_s: float) -> int | None:
        self._process.join(max(0.0, timeout_s))
        return self._process.exitcode

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


class Children:
    """The processes of a run, by LP. Leaving the context ends those that still run: first asked, then killed."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._children: dict[int, Child] = {}

    def start(self, seat: LpSpec) -> None:
        """Start the process of one LP."""
        self._children[seat.lp] = self._launcher.start(seat)

    def pid(self, lp: int) -> int:
        """The process id of LP `lp`."""
        return self._children[lp].pid

    def show_stack(self, lp: int) -> None:
        """Let LP `lp` print where its program is; it is about to be ended, and one that cannot print ends of this."""
        if self._children[lp].wait(0.0) is None:
            with suppress(ProcessLookupError):
                os.kill(self._children[lp].pid, signal.SIGUSR1)

    @property
    def pids(self) -> tuple[int, ...]:
        """The process ids, by LP."""
        return tuple(child.pid for child in self._children.values())

    def exited(self) -> Mapping[int, int]:
        """The exit codes of the LPs whose processes have ended."""
        codes = {lp: child.wait(0.0) for lp, child in self._children.items()}
        return {lp: code for lp, code in codes.items() if code is not None}

    def join(self, lp: int, timeout_s: float) -> int | None:
        """The exit code of LP `lp`, or None when it still runs after `timeout_s`."""
        return self._children[lp].wait(timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end(lambda child: child.terminate(), _TERMINATE_S)
        self._end(lambda child: child.kill(), _KILL_S)

    def _end(self, how: Callable[[Child], None], patience_s: float) -> None:
        running = [child for child in self._children.values() if child.wait(0.0) is None]
        for child in running:
            how(child)
        for child in running:
            child.wait(patience_s)


def _with_import_path(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` in which a child finds our packages also when they run from a checkout that is not installed."""
    root = str(Path(__file__).parent.parent)
    if root in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return dict(environment)
    inherited = environment.get("PYTHONPATH")
    return dict(environment) | {
        "PYTHONPATH": os.pathsep.join([root, inherited] if inherited else [root])
    }


@contextmanager
def _interrupts_blocked() -> Generator[None]:
    """A child inherits the mask: Ctrl-C in the terminal cannot interrupt it before it has said how it takes it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
