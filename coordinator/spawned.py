"""Implements `torch.multiprocessing.spawn`: a session that runs a function on each rank.

Errors are raised as the exceptions that `torch.multiprocessing.spawn` of PyTorch raises.
"""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import NoReturn

from coordinator.aggregate import merge_op_log, summarise
from coordinator.failure import Interrupted, LpDied, RankFailed
from coordinator.launcher import SpawnLauncher
from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.report.files import prepare_directory, write_ccl_trace, write_files
from coordinator.session import RunResult, Session
from runtime.core.errors import KernbenchError
from runtime.core.output import UnwrittenOutputs
from runtime.torch.process_errors import ProcessExitedException, ProcessRaisedException
from runtime.wire.control import Status


class SpawnedSession:
    """One run of `function(rank, *args)` on `nprocs` SIPs in `procs` processes, or one each.

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
        """Run to the end; raises as PyTorch if a rank fails, `KeyboardInterrupt` on Ctrl-C."""
        result = self._session.run()
        for slow in result.slow_exits:
            sys.stderr.write(f"kernbench: warning: {slow}\n")
        unwritten = UnwrittenOutputs()
        with unwritten.attempt():
            self._write_files(result)
        if result.error is not None:
            raise_as_torch_does(result.error)
        unwritten.check()

    def _write_files(self, result: RunResult) -> None:
        if self._out is None:
            return
        if self._plan.ccl_trace:
            write_ccl_trace(self._out, result.collected.transfers)
        write_files(self._out, summarise(self._plan, result), merge_op_log(result.collected.logs))

    def stop(self) -> None:
        """End the run from another thread."""
        self._session.stop()

    def pids(self) -> tuple[int, ...]:
        """The process ids, by LP; waits until the processes have been started."""
        self._launched.event.wait()
        return self._launched.pids


class _Launched:
    """Stores the process ids and shows no progress, because the terminal belongs to the caller."""

    def __init__(self) -> None:
        self.event = Event()
        self.pids: tuple[int, ...] = ()

    def launched(self, pids: tuple[int, ...]) -> None:
        self.pids = pids
        self.event.set()

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        pass

    def ended(self) -> None:
        # A session that failed before its processes started releases `pids()`, too.
        self.event.set()


def raise_as_torch_does(error: KernbenchError) -> NoReturn:
    """Raise the exception of PyTorch that corresponds to `error`.

    Ctrl-C and SIGTERM then take effect on the caller itself.
    """
    if isinstance(error, RankFailed):
        index = error.failed.rank if error.failed.rank >= 0 else error.process.sips[0]
        title = f"-- Process {index} terminated with the following error ({error}):"
        text = f"\n\n{title}\n{error.failed.traceback}"
        raise ProcessRaisedException(text, index, error.process.pid) from error
    if isinstance(error, LpDied):
        raise ProcessExitedException(
            str(error), error.process.sips[0], error.process.pid, error.exit_code, error.signal_name
        ) from error
    if isinstance(error, Interrupted) and error.signum == signal.SIGINT:
        raise KeyboardInterrupt
    if isinstance(error, Interrupted):
        # The caller's signal handlers are restored: the signal now acts as without a session.
        signal.raise_signal(error.signum)
    raise error
