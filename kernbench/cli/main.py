"""`kernbench`: read the command line, do what it asks, and say by the exit code how it went."""

import os
import signal
import sys
from collections.abc import Sequence

from kernbench.cli.ending import ExitCode, complain
from kernbench.cli.options import Invocation, parse, words_of_perf
from kernbench.cli.tools import TOOLS, run_tool
from runtime.core.bench_registry import Entry, Study, StudyOptions, registered
from runtime.core.errors import ConfigError, KernbenchError, UsageError


def main(words: Sequence[str] | None = None) -> int:
    """The command `kernbench` with the words of `sys.argv`; returns the exit code."""
    try:
        return _main(sys.argv[1:] if words is None else words)
    except (UsageError, ConfigError) as error:
        complain(error)
        return ExitCode.USAGE
    except KernbenchError as error:
        complain(error)
        return ExitCode.FAILED
    except KeyboardInterrupt:
        return ExitCode.SIGNALLED + signal.SIGINT
    except BrokenPipeError:
        # Whoever read the output has gone. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.SIGNALLED + signal.SIGPIPE


def _main(words: Sequence[str]) -> int:
    if words and words[0] in TOOLS:
        return run_tool(words[0], words[1:])
    asked = words_of_perf(words)
    if asked is not None:
        return _perf(asked)
    invocation = parse(words, _load_benches())
    if invocation is None:
        return ExitCode.PASSED
    if invocation.study is not None:
        return _run_study(invocation.study, invocation)
    # Loaded on demand: a text or a misspelt word needs neither the hardware's schema nor sockets.
    from coordinator.launcher import InterpreterLauncher
    from kernbench.cli.run import make_plan, run

    return run(make_plan(invocation), InterpreterLauncher(), invocation.out)


def _perf(words: Sequence[str]) -> int:
    from coordinator.launcher import InterpreterLauncher
    from kernbench.cli.perf import perf

    return perf(words, InterpreterLauncher())


def _run_study(study: Study, invocation: Invocation) -> int:
    options = StudyOptions(
        invocation.topology, invocation.procs, invocation.timeout, invocation.out
    )
    return ExitCode.PASSED if study.function(options, **invocation.flags) else ExitCode.FAILED


def _load_benches() -> Sequence[Entry]:
    from kernbench.benches import load_all

    load_all()
    return registered()
