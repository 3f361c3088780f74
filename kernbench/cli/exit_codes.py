"""The exit codes of the command, and the form of its errors."""

import sys
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
    sys.stderr.write(f"kernbench: error: {error}\n")
