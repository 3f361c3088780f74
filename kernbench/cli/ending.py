"""How a command ends: its exit code, and one line that says what is wrong."""

import sys
from enum import IntEnum

from runtime.core.errors import KernbenchError


class ExitCode(IntEnum):
    """What the shell is told. A command that a signal stopped ends with 128 + its number."""

    PASSED = 0
    FAILED = 1
    """Wrong results, or a run that failed."""
    USAGE = 2
    """The user asked for something that does not exist."""
    SIGNALLED = 128


def complain(error: KernbenchError) -> None:
    """Print the error to the standard error."""
    sys.stderr.write(f"kernbench: error: {error}\n")
