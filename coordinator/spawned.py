"""A session on behalf of `torch.multiprocessing.spawn`: a function of the caller on every rank, and torch's exceptions."""

import signal
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import NoReturn

from coordinator.aggregate import merge_op_log, summarise
from coordinator.failure import Interrupted, LpDied, RankFailed
from coordinator.launcher import SpawnLauncher
from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.report.files import prepare_directory, write_ccl_trace, write_files
from coordinator.session import Session
from runtime.core.errors import KernbenchError
from runtime.torch.process_errors import ProcessExitedException, ProcessRaisedException
from runtime.wire.messages import Status


class SpawnedSession:
    """One run of `function(rank, *args)` on `nprocs` SIPs, dealt to `procs` processes, by default one each.

    `out` is the directory of its report; without it nothing is traced or written.
    """

    def __init__(
        self,
        function: Callable[..., object],
        args: tuple[object, ...],
        nprocs: int,
        *,
        procs: int | None,
        daemon: bool,
        topology: Path | None,
        ccl: Path | None,
        out: Path | None,
    ) -> None:
        config = load_config(topology, ccl, nprocs)
        program = ProgramSpec(
            "function", getattr(function, "__qualname__", type(function).__name__)
        )
        self._plan = Plan(
            config, program, nprocs if procs is None else procs, trace=out is not None
        )
        self._out = None if out is None else prepare_directory(out, program.name)
        self._launched = _Launched()
        self._session = Session(
            self._plan, SpawnLauncher(function, args, daemon=daemon), self._launched
        )

    def run(self) -> None:
        """Run to the end; raises what torch raises when a rank fails, `KeyboardInterrupt` after Ctrl-C."""
        result = self._session.run()
        if self._out is not None:
            if self._plan.ccl_trace:
                write_ccl_trace(self._out, result.collected.transfers)
            write_files(
                self._out, summarise(self._plan, result), merge_op_log(result.collected.logs)
            )
        if result.error is not None:
            raise_as_torch_does(result.error)

    def stop(self) -> None:
        """End the run from another thread."""
        self._session.stop()

    def pids(self) -> tuple[int, ...]:
        """The processes of the run, by LP; waits until they have been started."""
        self._launched.event.wait()
        return self._launched.pids


class _Launched:
    """Remembers the processes and shows nothing: the terminal is the caller's."""

    def __init__(self) -> None:
        self.event = Event()
        self.pids: tuple[int, ...] = ()

    def launched(self, pids: tuple[int, ...]) -> None:
        self.pids = pids
        self.event.set()

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        pass

    def ended(self) -> None:
        # A session that failed before its processes started has none to wait for.
        self.event.set()


def raise_as_torch_does(error: KernbenchError) -> NoReturn:
    """Raise what a caller of PyTorch would expect for `error`; Ctrl-C and SIGTERM take effect on the caller itself."""
    if isinstance(error, RankFailed):
        index = error.failed.rank if error.failed.rank >= 0 else error.process.sips[0]
        text = f"\n\n-- Process {index} terminated with the following error ({error}):\n{error.failed.traceback}"
        raise ProcessRaisedException(text, index, error.process.pid) from error
    if isinstance(error, LpDied):
        raise ProcessExitedException(
            str(error), error.process.sips[0], error.process.pid, error.exit_code, error.signal_name
        ) from error
    if isinstance(error, Interrupted) and error.signum == signal.SIGINT:
        raise KeyboardInterrupt
    if isinstance(error, Interrupted):
        # The handlers of the caller are back in place: let the signal do what it would have done.
        signal.raise_signal(error.signum)
    raise error
