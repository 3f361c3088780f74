"""The exit codes of the command, and the form of its errors."""

import sys
from contextlib import suppress
from enum import IntEnum

from runtime.core.errors import KernbenchError


class ExitCode(IntEnum):
    """The exit code of the process. A command that a signal stopped ends with 128 + its number."""

    PASSED = 0
    FAILED = 1
    """Wrong results, or a run that failed."""
    USAGE = 2
    """Wrong arguments, or a wrong configuration file."""
    SIGNALLED = 128


def print_error(error: KernbenchError) -> None:
    """Print the error to the standard error."""
    _print(f"kernbench: error: {error}\n")


def print_note(text: str) -> None:
    """Print a hint to the standard error."""
    _print(f"kernbench: note: {text}\n")


def print_warning(text: str) -> None:
    """Print a warning to the standard error."""
    _print(f"kernbench: warning: {text}\n")


def _print(text: str) -> None:
    # The exit code must arrive also where the standard error is a file on a full disk.
    with suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
