"""Keeps every core busy, so that the processes of a run wait for a processor as on a busy host."""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

_SPIN = f"import os\nwhile os.getppid() == {os.getpid()}:\n    for _ in range(10**6): pass\n"
"""Program of one busy core, which ends by itself if this process dies."""


@contextmanager
def busy_cores() -> Generator[None]:
    """A process for each core computes until the end of the context."""
    cores = len(os.sched_getaffinity(0))
    spinning = [subprocess.Popen([sys.executable, "-S", "-c", _SPIN]) for _ in range(cores)]
    try:
        yield
    finally:
        for process in spinning:
            process.kill()
            process.wait()
