"""`torch.multiprocessing`: start ranks from the user's program. Every rank is a process with its
own SIP and event engine.
"""

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from runtime.core.package_check import check_packages
from runtime.torch.absent import absent_attribute
from runtime.torch.process_errors import (
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
)
from runtime.wire.environment import coordinator_pid

__all__ = [
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
]


class _RunControl(Protocol):
    """The part of the coordinator's session that this module uses."""

    def run(self) -> None:
        """Run to the end."""
        ...

    def stop(self) -> None:
        """End the run from another thread."""
        ...

    def pids(self) -> tuple[int, ...]:
        """The process ids, once the processes run."""
        ...


class SpawnContext:
    """A run in the background, as `spawn(..., join=False)` returns it."""

    def __init__(self, session: _RunControl, *, daemon: bool) -> None:
        self._session = session
        self._error: BaseException | None = None
        self._thread = Thread(target=self._run, name="spawned session", daemon=daemon)
        self._thread.start()

    def pids(self) -> list[int]:
        """The process ids; waits until the processes have been started."""
        return list(self._session.pids())

    def join(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds; True when every rank has finished. Raises as `spawn`
        does.
        """
        try:
            self._thread.join(timeout)
        except KeyboardInterrupt:
            # Ctrl-C reaches the main thread only; the session in the other thread must end first,
            # or its processes would stay.
            self._session.stop()
            self._thread.join()
            raise
        if self._thread.is_alive():
            return False
        if self._error is not None:
            raise self._error
        return True

    def _run(self) -> None:
        try:
            self._session.run()
        except BaseException as error:  # noqa: BLE001 - `join` raises it in the caller's thread
            self._error = error


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

    Returns None when all ranks have finished, or a context at once if `join` is false. Raises
    `ProcessRaisedException` if a rank raises and `ProcessExitedException` if a process exits or is
    killed; the other processes are stopped. `fn` and `args` are pickled for other processes, so
    `fn` must be defined at the top level of a module. The environment variables
    `KERNBENCH_TOPOLOGY` and `KERNBENCH_CCL` name the configuration files, `KERNBENCH_OUT` a
    directory for the report.
    """
    _check(fn, nprocs, start_method)
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
    session.run()
    return None


def _check(fn: Callable[..., object], nprocs: int, start_method: str) -> None:
    # A spawned script is imported by its ranks. Without a `__main__` guard it would spawn again
    # there.
    if coordinator_pid() is not None:
        raise RuntimeError(
            "torch.multiprocessing.spawn: this process is a rank of a run already, ranks cannot "
            "spawn ranks"
        )
    if start_method != "spawn":
        raise ValueError(
            f"torch.multiprocessing.spawn: start_method is 'spawn', got {start_method!r}"
        )
    if nprocs < 1:
        raise ValueError(f"torch.multiprocessing.spawn: nprocs is at least 1, got {nprocs}")
    name = getattr(fn, "__qualname__", "")
    # `<lambda>` and `<locals>`: pickle sends the name of a function, and the child imports it.
    if "<" in name:
        problem = "cannot be imported in another process: define it at the top level of a module"
        raise TypeError(f"torch.multiprocessing.spawn: {name!r} {problem}")


def _path(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


if not TYPE_CHECKING:
    # With this function in sight, a type checker would accept every attribute.
    def __getattr__(name: str) -> NoReturn:
        raise absent_attribute("torch.multiprocessing", name, __all__)
