"""Implements `torch.multiprocessing.spawn`: a session that runs a function on each rank.

Errors are raised as the exceptions that `torch.multiprocessing.spawn` of PyTorch raises.
"""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, NoReturn

from coordinator.launch.launcher import SpawnLauncher
from coordinator.launch.placement import Placement
from coordinator.plan import Plan, ProgramSpec, load_config
from coordinator.report.aggregate import summarise
from coordinator.report.files import prepare_directory
from coordinator.report.run_directory import RunFiles
from coordinator.session import RunResult, Session
from coordinator.watch.failure import Interrupted, LpDied, LpProcess, RankFailed
from runtime.core.errors import ConfigError, KernbenchError
from runtime.core.output import UnwrittenOutputs, print_lines
from runtime.core.simtime import format_ps
from runtime.torch.process_errors import ProcessExitedException, ProcessRaisedException
from runtime.wire.control import Status
from runtime.wire.reports import in_order_of_time

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess


class SpawnedSession:
    """A run of `function(rank, *args)` on `nprocs` SIPs in `procs` processes, or one each.

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
        if self._plan.world_size != nprocs:
            key_path = config.ccl.world_size_key(config.ccl.resolve().name)
            problem = f"is {self._plan.world_size}, but the program spawns {nprocs} ranks"
            raise ConfigError(config.ccl.source, key_path, problem)
        self._files: RunFiles | None = None
        if out is not None:
            self._files = RunFiles(prepare_directory(out, program.name), self._plan)
        self._launched = _Launched()
        self._launcher = SpawnLauncher(function, args, daemon=daemon)
        self._session = Session(self._plan, self._launcher, self._launched, self._files)

    def run(self) -> None:
        """Run to the end; raises as PyTorch if a rank fails, `KeyboardInterrupt` on Ctrl-C."""
        result = self._session.run()
        for warning in result.warnings:
            sys.stderr.write(f"kernbench: warning: {warning}\n")
        unwritten = UnwrittenOutputs()
        with unwritten.attempt():
            print_lines(map(str, in_order_of_time(result.collected.prints)))
        with unwritten.attempt():
            self._write_files(result)
        if self._files is not None:
            for warning in self._files.failed.take():
                sys.stderr.write(f"kernbench: warning: {warning}\n")
        if result.error is not None:
            raise_as_torch_does(result.error)
        unwritten.check()

    def _write_files(self, result: RunResult) -> None:
        if self._files is not None:
            self._files.finish(result.collected, summarise(self._plan, result))

    def stop(self) -> None:
        """End the run from another thread."""
        self._session.stop()

    def set_grace_period(self, seconds: float) -> None:
        """Give the other processes this time to exit by themselves after a failure, and then to
        handle SIGTERM.
        """
        self._session.grace_s = seconds

    def wait_launched(self) -> bool:
        """Wait until all processes have been started; False if the run has ended before."""
        self._launched.decided.wait()
        return self._launched.started

    @property
    def processes(self) -> "list[BaseProcess]":
        """The processes, by LP."""
        return self._launcher.processes


def _pid(process: LpProcess) -> int:
    assert process.pid is not None, "a spawned process is a child of this one"
    return process.pid


class _Launched:
    """Observes the start and shows no progress, because the terminal belongs to the caller."""

    def __init__(self) -> None:
        self.decided = Event()
        self.started = False

    def launched(self, pids: tuple[int, ...]) -> None:  # noqa: ARG002 - the launcher has them
        self.started = True
        self.decided.set()

    def placed(self, placement: Placement, sips_of_lp: tuple[tuple[int, ...], ...]) -> None:
        """Every process has joined."""

    def status(self, status: Status, sips: tuple[int, ...]) -> None:
        pass

    def ended(self) -> None:
        # A session that failed before its processes started releases the waiting caller, too.
        self.decided.set()


def raise_as_torch_does(error: KernbenchError) -> NoReturn:
    """Raise the exception of PyTorch that corresponds to `error`.

    Ctrl-C and SIGTERM then take effect on the caller itself.
    """
    # The texts are PyTorch's: programs search them. Rank, simulated time and process are in a note,
    # which Python prints as well.
    if isinstance(error, RankFailed):
        failed, pid = error.failed, _pid(error.process)
        index = failed.rank if failed.rank >= 0 else error.process.sips[0]
        if failed.exit_code:
            text = f"process {index} terminated with exit code {failed.exit_code}"
            exited = ProcessExitedException(text, index, pid, failed.exit_code)
            exited.add_note(str(error))
            raise exited from error
        text = f"\n\n-- Process {index} terminated with the following error:\n{error.lines}"
        raised = ProcessRaisedException(text, index, pid)
        raised.add_note(f"rank {failed.rank} failed at {format_ps(failed.time_ps)}")
        raise raised from error
    if isinstance(error, LpDied):
        index, signal_name = error.process.sips[0], error.signal_name
        end = f"signal {signal_name}" if signal_name else f"exit code {error.exit_code}"
        exited = ProcessExitedException(
            f"process {index} terminated with {end}",
            index,
            _pid(error.process),
            error.exit_code,
            signal_name,
        )
        exited.add_note(str(error))
        raise exited from error
    if isinstance(error, Interrupted) and error.signum == signal.SIGINT:
        raise KeyboardInterrupt
    if isinstance(error, Interrupted):
        # The caller's signal handlers are restored: the signal now acts as without a session.
        signal.raise_signal(error.signum)
    raise error
