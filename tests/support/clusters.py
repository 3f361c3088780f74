"""Tasks for workers of clusters, and the processes that measure points there."""

import os
import signal
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path

from runtime.core.errors import ConfigError
from runtime.core.wallclock import sleep_s
from tests.support.points import NumberPoint, NumberRow, squared


def raising_of_a_file(name: str) -> None:
    raise ConfigError(name, "ucie", "unknown key")


def killing_its_worker(deaths: Path) -> None:
    """Appends a line to the file `deaths` before."""
    with deaths.open("a") as file:
        file.write("killed\n")
    os.kill(os.getpid(), signal.SIGKILL)


def waiting_for_a_file(started: Path, end: Path) -> None:
    """Creates the file `started`, and returns when `end` exists."""
    started.touch()
    while not end.exists():
        sleep_s(0.05)


def squared_after_the_death_of_its_worker(point: NumberPoint) -> NumberRow:
    """The point process of number 3 kills its worker, once."""
    death = Path(point.folder, "death")
    if point.number == 3 and not death.exists():
        death.touch()
        os.kill(os.getppid(), signal.SIGKILL)
    return squared(point)


def loky_pool() -> Executor:
    """Two processes of loky."""
    from loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=2)


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
