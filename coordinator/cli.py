"""`kernbench`: read the command line, do what it asks, and say by the exit code how it went."""

import os
import signal
import sys
from collections.abc import Sequence

from coordinator.ending import ExitCode, complain
from coordinator.options import parse
from coordinator.tools import TOOLS, run_tool
from runtime.bench_registry import Bench, registered
from runtime.errors import ConfigError, KernbenchError, UsageError


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
    invocation = parse(words, _load_benches())
    if invocation is None:
        return ExitCode.PASSED
    # Loaded on demand: a text or a misspelt word needs neither the hardware's schema nor sockets.
    from coordinator.launcher import InterpreterLauncher
    from coordinator.run import make_plan, run

    return run(make_plan(invocation), InterpreterLauncher(), invocation.out)


def _load_benches() -> Sequence[Bench]:
    from benches import load_all

    load_all()
    return registered()
