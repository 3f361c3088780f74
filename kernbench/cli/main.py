"""The command `kernbench`: parses its arguments, executes the request, returns the exit code."""

import errno
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from kernbench.cli.head_start import head_start
from kernbench.cli.own_process import own_process
from kernbench.command.exit_codes import ExitCode, print_error
from runtime.core.code.package_check import check_packages
from runtime.core.errors import ConfigError, KernbenchError, UsageError
from runtime.core.output import STDOUT, OutputError, ReaderEndedError, print_lines
from runtime.core.wallclock import now_s, process_age_s

if TYPE_CHECKING:
    from coordinator.launch.start import Launch
    from kernbench.command.options import CliContext


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, by default those of the process; returns the exit code."""
    if arguments is not None:
        return _exit_code(arguments, now_s())
    with own_process():
        return _exit_code(sys.argv[1:], now_s() - process_age_s())


def _exit_code(arguments: Sequence[str], began_s: float) -> int:
    try:
        _require_streams()
        _require_directory()
        check_packages()
        code = _run(arguments, began_s)
        print_lines(())
        return code  # noqa: TRY300 - an error of the flush counts
    except (BrokenPipeError, ReaderEndedError):
        return ExitCode.SIGNALLED + signal.SIGPIPE
    except (UsageError, ConfigError) as error:
        print_error(error)
        return ExitCode.USAGE
    except KernbenchError as error:
        print_error(error)
        return ExitCode.FAILED
    except KeyboardInterrupt:
        # The shell expects the exit code of a process that the signal ended.
        return ExitCode.SIGNALLED + signal.SIGINT
    except OSError:
        error = _stdout_error()
        if not isinstance(error, OutputError):
            raise
        print_error(error)
        return ExitCode.FAILED
    finally:
        if _stdout_error() is not None:
            # Python flushes at exit, and would print the error once more and change the exit code.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _require_streams() -> None:
    """Raise `OutputError` if the standard output is closed; replace a closed standard error."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115, PTH123 - open until the process ends
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - as above
        raise OutputError((STDOUT, os.strerror(errno.EBADF)))


def _require_directory() -> None:
    """Raise `UsageError` if the working directory has been removed."""
    try:
        Path.cwd()
    except FileNotFoundError as error:
        raise UsageError("the working directory has been removed: change to another") from error


def _stdout_error() -> OutputError | BrokenPipeError | None:
    """The error of what is still buffered for the standard output, None if it can be written."""
    try:
        print_lines(())
    except (OutputError, BrokenPipeError) as error:
        return error
    return None


def _run(arguments: Sequence[str], began_s: float) -> int:
    """Run the command; processes of a run that never starts end with it."""
    launch = head_start(arguments, began_s)
    with launch or nullcontext():
        return call(arguments, _context(launch))


def call(arguments: Sequence[str], context: "CliContext | None" = None) -> int:
    """Run the command that `arguments` name; returns the exit code.

    Errors are raised: `UsageError`, in one line, for arguments that are wrong.
    """
    # Imported after the processes have been started: it takes as long as their imports.
    from click import Abort

    from kernbench.cli.group import kernbench_group

    try:
        code: int = kernbench_group().main(
            list(arguments), "kernbench", standalone_mode=False, obj=context or _context(None)
        )
    except Abort as abort:
        # What click makes of Ctrl-C.
        raise KeyboardInterrupt from abort
    return code


def _context(launch: "Launch | None") -> "CliContext":
    from kernbench.benches import load_bench, load_entries
    from kernbench.command.options import CliContext

    return CliContext(load_entries, lambda request: _execute(request, launch), load_bench)


def _execute(request: object, launch: "Launch | None") -> int:
    """Execute what a command has read; returns the exit code."""
    # A wrong KERNBENCH_CORE is one line here, not an error of every process.
    import_module("runtime.core.compiled.choice")
    from kernbench.cli.run import StudyRequest
    from kernbench.command.run_request import RunRequest

    if isinstance(request, StudyRequest):
        passed = request.study.function(request.options, **request.flags)
        return ExitCode.PASSED if passed else ExitCode.FAILED
    # Imported on demand: a help text or a wrong argument needs neither schema nor sockets.
    from coordinator.launch.launcher import InterpreterLauncher
    from kernbench.cli.launchers.request import NodeRequest

    if isinstance(request, NodeRequest):
        from kernbench.cli.launchers.take_part import take_part

        return take_part(request)
    processes = launch or InterpreterLauncher()
    if isinstance(request, RunRequest):
        from kernbench.command.simulation import simulate

        return simulate(request, processes)
    from kernbench.measure.collectives.arguments import PerfRequest

    if isinstance(request, PerfRequest):
        from kernbench.measure.collectives.measurement import measure

        return measure(request, processes)
    from kernbench.sweep.request import FigureRequest, SweepRequest
    from kernbench.sweep.run import draw_again, sweep

    if isinstance(request, FigureRequest):
        return draw_again(request)
    assert isinstance(request, SweepRequest), "no command makes another kind of request"
    return sweep(request)
