"""Starts LPs as processes.

Benches and scripts run in fresh interpreters (`InterpreterLauncher`), functions of a calling
program in children of multiprocessing (`SpawnLauncher`).
"""

import os
import select
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from coordinator.launch.relay import Relay
from runtime.core.errors import UsageError
from runtime.wire.environment import COORDINATOR_PID, RUN_DIRECTORY
from runtime.wire.run_id import run_id_pipe

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess


@dataclass(frozen=True)
class SiteArguments:
    """The arguments that only a process of a launcher has: the directory of its host, the address
    at which it listens for LPs of other hosts, a hash of the command line of all processes.

    `lock` is an open file with the lock of the directory, which the process inherits, or None.
    """

    directory: Path
    listen: str
    command: str
    lock: int | None = None

    @property
    def arguments(self) -> list[str]:
        """The same as arguments of `python -m sip_node`."""
        lock = [] if self.lock is None else ["--lock-fd", str(self.lock)]
        listen = ["--listen", self.listen] if self.listen else []
        directory = ["--host-directory", str(self.directory)]
        return [*directory, *listen, *lock, "--command-hash", self.command]


@dataclass(frozen=True)
class LpSpec:
    """The data with which the process of one LP joins the run. `lone`: it is the only LP.

    `site` is that of LP 0 in a run of a launcher.
    """

    control_endpoint: str
    run_id: str = field(repr=False)
    lp: int
    lone: bool
    directory: Path
    coordinator_pid: int
    site: SiteArguments | None = None

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the process: those of the lifeline.

        The lifeline in the LP watches the coordinator's process and removes the run directory. The
        directory of a host is removed by the last process in it.
        """
        coordinator = {COORDINATOR_PID: str(self.coordinator_pid)}
        if self.site is not None:
            return coordinator
        return coordinator | {RUN_DIRECTORY: str(self.directory)}


class Child(Protocol):
    """The process of one LP."""

    @property
    def pid(self) -> int:
        """The id of the process."""
        ...

    def wait(self, timeout_s: float) -> int | None:
        """The exit code, -n after signal n, or None if the process still runs after `timeout_s`."""
        ...

    def terminate(self) -> None:
        """Send SIGTERM."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""
        ...


class Launcher(Protocol):
    """Starts the process of an LP."""

    def start(self, spec: LpSpec) -> Child:
        """Start the LP at `spec`."""
        ...


@dataclass(frozen=True)
class InterpreterLauncher:
    """Every LP is a fresh interpreter that runs `command`, by default `python -P -m sip_node`.

    `-P` keeps the working directory off the import path: a user's `runtime.py` there must not hide
    the package. With `own_group`, signals to the process group of this process do not reach it.
    """

    command: tuple[str, ...] = (sys.executable, "-P", "-m", "sip_node")
    own_group: bool = False

    def start(self, spec: LpSpec) -> Child:
        """Start the LP at `spec`. Raises `UsageError` if the user has too many processes."""
        environment = lp_environment(os.environ) | spec.environment
        # A single LP inherits the terminal, so that a debugger works in it.
        stdin, stdout = (None, None) if spec.lone else (subprocess.DEVNULL, subprocess.PIPE)
        if spec.site is not None:
            # As the other processes of the launcher: it prints why it ends, also after this one.
            stdout = None
        try:
            with _interrupts_blocked(), run_id_pipe(spec.run_id) as run_id:
                arguments = joining_arguments(spec.control_endpoint, run_id, spec.lp, spec.site)
                process = subprocess.Popen(  # noqa: S603 - our own command
                    [*self.command, *arguments],
                    pass_fds=(run_id,),
                    env=environment,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stdout,
                    process_group=0 if self.own_group else None,
                )
        except BlockingIOError as error:
            raise UsageError(
                f"cannot start the process of LP {spec.lp}: {error.strerror}; ulimit -u limits the "
                "processes and threads of a user"
            ) from error
        return _Interpreter(process)


def joining_arguments(
    endpoint: str, run_id_file: int, lp: int, site: SiteArguments | None = None
) -> list[str]:
    """The arguments of `python -m sip_node` with which a process joins a run.

    It reads the id of the run from the open file `run_id_file`, which it inherits.
    """
    joining = ["--connect", endpoint, "--run-id-fd", str(run_id_file), "--lp", str(lp)]
    return joining if site is None else [*joining, *site.arguments]


class _Interpreter:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._relay = (
            Relay(process.stdout, process.stderr) if process.stdout and process.stderr else None
        )
        self.pid = process.pid

    def wait(self, timeout_s: float) -> int | None:
        code = self._exit_code(0.0)
        if code is None and timeout_s > 0:
            code = self._exit_code(0.0 if _waited(self.pid, timeout_s) else timeout_s)
        if code is None:
            return None
        # The last lines of a process must appear before the error about its exit.
        if self._relay:
            self._relay.drain()
        return code

    def _exit_code(self, timeout_s: float) -> int | None:
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()


def _waited(pid: int, timeout_s: float) -> bool:
    """Wait until a child ends, or for `timeout_s`; False where the system cannot notify of it."""
    # `subprocess` looks for the end at intervals of up to 50 ms. A system without file descriptors
    # for processes, or in which no file can be opened, has only that.
    with suppress(AttributeError, OSError):
        end = os.pidfd_open(pid)
        try:
            poller = select.poll()
            poller.register(end, select.POLLIN)
            poller.poll(timeout_s * 1000)
        finally:
            os.close(end)
        return True
    return False


@dataclass(frozen=True)
class SpawnLauncher:
    """Every LP is a child of multiprocessing's spawn method that calls `function(rank, *args)`.

    The function travels through the private pipe between parent and child. `entry` names the
    function that the child imports and calls with `(endpoint, run id, lp, function, args)`; this
    process does not import the code of LPs. `processes` has the children that were started.
    """

    function: Callable[..., object]
    args: tuple[object, ...]
    daemon: bool = False
    entry: str = "sip_node.__main__:enter"
    processes: "list[BaseProcess]" = field(default_factory=list["BaseProcess"])

    def start(self, spec: LpSpec) -> Child:
        """Start the LP at `spec`; `PicklingError` if the function or an argument cannot be sent."""
        import multiprocessing

        process = multiprocessing.get_context("spawn").Process(
            target=_enter,
            args=(self.entry, spec, self.function, self.args),
            name=f"LP {spec.lp}",
            daemon=self.daemon,
        )
        with _interrupts_blocked(), _explained_pickling():
            process.start()
        self.processes.append(process)
        return _Spawned(process)


@contextmanager
def _explained_pickling() -> Generator[None]:
    """Raise what the pickling of a function or an argument raises as a `PicklingError` with a hint.

    Python raises three types for it: one for a lambda, one for a local function, one for a lock.
    """
    from pickle import PicklingError  # noqa: TID251 - the exception only; multiprocessing pickles

    try:
        yield
    except (PicklingError, AttributeError, TypeError) as error:
        hint = (
            "torch.multiprocessing.spawn sends fn and args to other processes by pickle. Define fn "
            "at the top level of a module, not as a lambda or inside a function, and pass as args "
            "what its ranks read from variables of an enclosing function"
        )
        raise PicklingError(f"{error}: {hint}") from error


def _enter(
    entry: str, spec: LpSpec, function: Callable[..., object], args: tuple[object, ...]
) -> None:
    os.environ.update(spec.environment)
    module, _, name = entry.partition(":")
    enter: Callable[..., int] = getattr(import_module(module), name)
    sys.exit(enter(spec.control_endpoint, spec.run_id, spec.lp, function, args))


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


def lp_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` for an LP: with our packages on the import path, for a checkout that is not
    installed, and without buffers.
    """
    # Python buffers its output to a pipe in blocks; a rank's lines must appear when printed.
    variables = dict(environment) | {"PYTHONUNBUFFERED": "1"}
    root = str(Path(__file__).parents[2])
    if root in (sysconfig.get_path("purelib"), sysconfig.get_path("platlib")):
        return variables
    inherited = environment.get("PYTHONPATH")
    return variables | {"PYTHONPATH": os.pathsep.join([root, inherited] if inherited else [root])}


@contextmanager
def _interrupts_blocked() -> Generator[None]:
    """Block SIGINT for children that are started here.

    A terminal sends Ctrl-C to the whole process group. A child inherits the signal mask, so it is
    not interrupted before it has installed its own handler; then it unblocks the signal.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
