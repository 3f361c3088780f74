"""`torch.multiprocessing`: start ranks from the user's program. Every rank is a process with its
own SIP and event engine.
"""

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from runtime.core.code.package_check import check_packages
from runtime.core.errors import KernbenchError, absent_attribute
from runtime.device.rank.rank_state import current_rank
from runtime.torch.process_errors import (
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
)
from runtime.wire.environment import coordinator_pid, full_traceback_requested

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

__all__ = [
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
]


_T = TypeVar("_T")


class _RunControl(Protocol):
    """The part of the coordinator's session that this module uses."""

    def run(self) -> None:
        """Run to the end."""
        ...

    def stop(self) -> None:
        """End the run from another thread."""
        ...

    def wait_launched(self) -> bool:
        """Wait until all processes have been started; False if the run has ended before."""
        ...

    def set_grace_period(self, seconds: float) -> None:
        """The time that the other processes have after a failure, before each signal."""
        ...

    @property
    def processes(self) -> "list[BaseProcess]":
        """The processes that have been started."""
        ...


# Contexts whose runs failed and which only the exit of the interpreter has joined. Its exit code
# cannot be set in any other way then.
_failed_at_exit: "list[SpawnContext]" = []


def _exit_with_failure() -> None:
    if _failed_at_exit:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(1)


# Registered with the import: functions that a program registers later run before it.
atexit.register(_exit_with_failure)


class SpawnContext:
    """A run in the background, as `spawn(..., join=False)` returns it, with its processes started.

    A context that the program does not join is joined when the interpreter exits: a failure is then
    printed, and the exit code is 1. With `daemon`, or after a Ctrl-C, the exit ends the processes
    instead.
    """

    def __init__(self, session: _RunControl, *, daemon: bool) -> None:
        self._session, self._daemon = session, daemon
        self._error: BaseException | None = None
        # Waited for in place of the thread: a `Thread.join` that Ctrl-C interrupts takes the thread
        # for ended, and a second one returns at once (Python 3.11).
        self._ended = Event()
        # A daemon thread: at the exit of the interpreter, `_join_at_exit` waits for the session.
        Thread(target=self._run, name="spawned session", daemon=True).start()
        if not self._interruptibly(session.wait_launched):
            # The processes could not be started: that is an error of the caller.
            self.join()
        # After multiprocessing, which `session` has imported, has registered its own function, and
        # so before that function waits for the processes.
        atexit.register(self._join_at_exit)

    @property
    def processes(self) -> "list[BaseProcess]":
        """The processes, by the number of their first rank."""
        return self._session.processes

    def pids(self) -> list[int]:
        """The process ids."""
        return [process.pid for process in self.processes if process.pid is not None]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait up to `timeout` seconds; True when every rank has finished. Raises as `spawn` does.

        After a failure the other processes have `grace_period` seconds, by default 1, to exit by
        themselves, and as long again to handle SIGTERM; then they are killed.
        """
        if grace_period is not None:
            self._session.set_grace_period(grace_period)
        if not self._interruptibly(lambda: self._ended.wait(timeout)):
            return False
        atexit.unregister(self._join_at_exit)
        if self._error is not None:
            raise _shown(self._error)
        return True

    def _interruptibly(self, wait: Callable[[], _T]) -> _T:
        try:
            return wait()
        except KeyboardInterrupt:
            # Ctrl-C reaches the main thread only; the session in the other thread must end first,
            # or its processes would stay.
            self._session.stop()
            self._ended.wait()
            atexit.unregister(self._join_at_exit)
            raise

    def _run(self) -> None:
        try:
            self._session.run()
        except BaseException as error:  # noqa: BLE001 - `join` raises it in the caller's thread
            self._error = error
        finally:
            self._ended.set()

    def _join_at_exit(self) -> None:
        # The ranks ignore Ctrl-C. One that ends the program outside of `join` has to end them, too,
        # or the exit would wait for ranks that may never return.
        if self._daemon or getattr(sys, "last_type", None) is KeyboardInterrupt:
            self._session.stop()
            self._ended.wait()
            return
        try:
            self.join()
        except BaseException as error:  # noqa: BLE001 - there is no caller any more
            from traceback import print_exception

            print_exception(error if full_traceback_requested() else error.with_traceback(None))
            _failed_at_exit.append(self)


def spawn(
    fn: Callable[..., object],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,  # noqa: FBT001, FBT002 - the signature is PyTorch's
    daemon: bool = False,  # noqa: FBT001, FBT002
    start_method: str = "spawn",
    *,
    procs: int | None = None,
) -> SpawnContext | None:
    """Call `fn(rank, *args)` on `nprocs` ranks with one SIP and one process each; `procs` packs
    them into fewer processes.

    Returns None when all ranks have finished; if `join` is false, a context as soon as the
    processes have been started. Raises `ProcessRaisedException` if a rank raises, and
    `ProcessExitedException` if it calls `sys.exit` with a code other than 0 or if its process exits
    or is killed; the other processes are stopped. `fn` and `args` are pickled for other processes:
    `PicklingError` where that is impossible, as for a lambda. The environment variables
    `KERNBENCH_TOPOLOGY` and `KERNBENCH_CCL` name the configuration files, `KERNBENCH_OUT` a
    directory for the report.
    """
    _check(nprocs, start_method)
    check_packages()
    # The only import of the coordinator in this package, and it is one by name: the user's program
    # starts the run, while the import contracts keep `runtime` below `coordinator`.
    coordinator: Any = import_module("coordinator.spawned")
    session: _RunControl = coordinator.SpawnedSession(
        fn,
        tuple(args),
        nprocs,
        procs=procs,
        daemon=daemon,
        topology=_path("KERNBENCH_TOPOLOGY"),
        ccl=_path("KERNBENCH_CCL"),
        out=_path("KERNBENCH_OUT"),
    )
    if not join:
        return SpawnContext(session, daemon=daemon)
    try:
        session.run()
    except (ProcessException, KernbenchError) as error:
        raise _shown(error) from error.__cause__
    return None


def _shown(error: BaseException) -> BaseException:
    """An error of a run without the frames of kernbench above it, and without its cause there."""
    if not full_traceback_requested():
        error.__cause__, error.__suppress_context__ = None, True
        error.__traceback__ = None
    return error


def _check(nprocs: int, start_method: str) -> None:
    # A spawned script is imported by its ranks. Without a `__main__` guard it would spawn again
    # there.
    if coordinator_pid() is not None or current_rank.get(None) is not None:
        hosts = int(os.environ.get("GROUP_WORLD_SIZE", "1"))
        instead = (
            f"; it starts processes on one host, and this run has {hosts}, whose launcher starts "
            "the ranks"
        )
        raise RuntimeError(
            "torch.multiprocessing.spawn: this process is a rank of a run already, ranks cannot "
            f"spawn ranks{instead if hosts > 1 else ''}"
        )
    if start_method != "spawn":
        raise ValueError(
            f"torch.multiprocessing.spawn: start_method is 'spawn', got {start_method!r}"
        )
    if nprocs < 1:
        raise ValueError(f"torch.multiprocessing.spawn: nprocs is at least 1, got {nprocs}")


def _path(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_attribute("torch.multiprocessing", name, __all__)
