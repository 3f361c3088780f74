"""The environment variables that a coordinator sets for the processes it starts: names that both sides share."""

import os
from pathlib import Path

COORDINATOR_PID = "KERNBENCH_COORDINATOR_PID"
"""The process that started this LP. An LP without it joined by hand."""
RUN_DIRECTORY = "KERNBENCH_RUN_DIRECTORY"
"""The private directory of the run: socket files live here, and whoever ends last removes it."""


def coordinator_pid() -> int | None:
    """The process that started this one as an LP, or None."""
    pid = os.environ.get(COORDINATOR_PID)
    return int(pid) if pid else None


def run_directory() -> Path | None:
    """The private directory of the run that this process was started for, or None."""
    directory = os.environ.get(RUN_DIRECTORY)
    return Path(directory) if directory else None
