"""The part of a run that a trace shows: some of its ranks, and an interval of simulated time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from kernbench.explain.records import Columns
from kernbench.explain.records.columns import Mask
from runtime.core.errors import UsageError

_PS_OF_UNIT = {"ps": 1, "ns": 1_000, "us": 1_000_000, "ms": 1_000_000_000}
_TIME = re.compile(r"(\d+(?:\.\d+)?)(ps|ns|us|ms)")
_INTERVAL = "--time"
_RANKS = "--ranks"


@dataclass(frozen=True)
class TracePart:
    """The ranks `sips`, in ascending order, from `begin_ps` to `end_ps`."""

    sips: tuple[int, ...]
    begin_ps: int
    end_ps: int

    def rows(self, columns: Columns, begin: str = "start_ps", end: str = "end_ps") -> Mask:
        """The rows of a table whose interval and this one have a moment in common."""
        return (columns[begin] <= self.end_ps) & (columns[end] >= self.begin_ps)


def parse_ranks(text: str, world_size: int) -> tuple[int, ...]:
    """The ranks in `0,2-5`, ascending. Raises `UsageError` for anything else."""
    ranks = set[int]()
    for word in text.split(","):
        first, dash, last = word.strip().partition("-")
        last = last if dash else first
        if not (_is_number(first) and _is_number(last)):
            raise UsageError(f"{_RANKS} {text!r}: expected ranks such as 0,2-5")
        if int(first) > int(last):
            raise UsageError(f"{_RANKS} {text!r}: a range has its first rank first: {last}-{first}")
        if int(last) >= world_size:
            raise UsageError(
                f"{_RANKS} {text!r}: the run has ranks 0 to {world_size - 1}, not {int(last)}"
            )
        ranks.update(range(int(first), int(last) + 1))
    return tuple(sorted(ranks))


def parse_interval(text: str, total_ps: int) -> tuple[int, int]:
    """The times in `FROM..TO`, such as `1.5us..2us`, `..800ns` or `1us..`, in picoseconds.

    An end that is left out is that of the run, `total_ps`. Raises `UsageError` for another form,
    and for an interval that is empty or begins behind the end of the run.
    """
    parts = text.split("..")
    if len(parts) != 2 or not any(parts):
        raise UsageError(f"{_INTERVAL} {text!r}: expected FROM..TO, such as 1.5us..2us or ..800ns")
    begin_ps = _time_ps(parts[0], text) if parts[0] else 0
    end_ps = _time_ps(parts[1], text) if parts[1] else total_ps
    if begin_ps > total_ps:
        raise UsageError(f"{_INTERVAL} {text!r}: the run ends at {_in_ns(total_ps)}")
    if begin_ps >= end_ps:
        problem = "is empty" if begin_ps == end_ps else "ends before it begins"
        raise UsageError(
            f"{_INTERVAL} {text!r}: the interval from {_in_ns(begin_ps)} to {_in_ns(end_ps)} "
            f"{problem}"
        )
    return begin_ps, end_ps


def select(ranks: str | None, interval: str | None, world_size: int, total_ps: int) -> TracePart:
    """The selection of two options, each of which is None for everything."""
    sips: Sequence[int] = range(world_size) if ranks is None else parse_ranks(ranks, world_size)
    whole = 0, total_ps
    begin_ps, end_ps = whole if interval is None else parse_interval(interval, total_ps)
    return TracePart(tuple(sips), begin_ps, end_ps)


def _is_number(text: str) -> bool:
    # A number with more digits than any count of SIPs may be too long to be converted.
    return text.isdecimal() and text.isascii() and len(text) <= 6


def _time_ps(text: str, interval: str) -> int:
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{_INTERVAL} {interval!r}: {text.strip()!r} is no time: a number and ps, ns, us or ms"
        )
    return int(Fraction(match[1]) * _PS_OF_UNIT[match[2]])


def _in_ns(time_ps: int) -> str:
    return f"{time_ps / 1_000:,.3f} ns"
