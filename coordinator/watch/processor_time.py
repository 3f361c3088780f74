"""The processor time of an LP: it distinguishes a process that is slow from one that hangs."""

from contextlib import suppress
from dataclasses import dataclass
from os import sysconf
from pathlib import Path

_OWN, _OF_CHILDREN = slice(11, 13), slice(13, 15)
"""`utime` and `stime`, `cutime` and `cstime` of proc(5), among the fields after the name."""


@dataclass(frozen=True)
class ProcessorTime:
    """Seconds of processor time: of a process with its threads, and of its descendants."""

    own_s: float
    descendants_s: float

    @property
    def all_s(self) -> float:
        """The time of the process and its descendants."""
        return self.own_s + self.descendants_s


def processor_time(pid: int) -> ProcessorTime | None:
    """The processor time of a process so far; None if it has ended, or without Linux's `/proc`."""
    times = _times(pid)
    if times is None:
        return None
    own_s, waited_s = times
    return ProcessorTime(own_s, waited_s + sum(map(_with_descendants_s, _children(pid))))


def _with_descendants_s(pid: int) -> float:
    times = _times(pid)
    # A process that ends in this moment is counted by its parent from then on.
    return 0.0 if times is None else sum(times) + sum(map(_with_descendants_s, _children(pid)))


def _times(pid: int) -> tuple[float, float] | None:
    """Seconds of a process, and of its children that have ended."""
    with suppress(OSError, ValueError):
        # The fields follow the name of the program in brackets, which may contain spaces.
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        fields, per_s = text.rpartition(")")[2].split(), sysconf("SC_CLK_TCK")
        return sum(map(int, fields[_OWN])) / per_s, sum(map(int, fields[_OF_CHILDREN])) / per_s
    return None


def _children(pid: int) -> list[int]:
    children = list[int]()
    # Each thread has children of its own.
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            children += map(int, thread.read_text("ascii").split())
    return children
