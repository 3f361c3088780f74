"""Tasks for workers of clusters, and the processes that measure points there."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from runtime.core.errors import ConfigError


def raising_of_a_file(name: str) -> None:
    raise ConfigError(name, "ucie", "unknown key")


def killing_its_worker() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def point_processes(mark: str) -> dict[int, int]:
    """Point processes whose environment has `mark`, each with the worker that has started it."""
    found = dict[int, int]()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            is_one = b"kernbench.points.child" in words
            if is_one and mark.encode() in (folder / "environ").read_bytes():
                found[int(folder.name)] = int(words[-2])
    return found
