"""Lengths of unions of intervals, in integer picoseconds."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Times = NDArray[np.int64]
Intervals = tuple[Times, Times]
"""Begins and ends."""


def union(begins: Times, ends: Times) -> Intervals:
    """Disjoint intervals in ascending order which cover the same instants."""
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], ends[order]
    reached = np.maximum.accumulate(ends) if len(ends) else ends
    # An interval opens a new one of the union where everything before it has ended.
    opens = np.ones(len(begins), np.bool_)
    opens[1:] = begins[1:] > reached[:-1]
    closes = np.append(opens[1:], True) if len(begins) else opens
    return begins[opens], reached[closes]


def joined(parts: Sequence[Intervals]) -> Intervals:
    """All intervals of several lists."""
    empty = np.zeros(0, np.int64)
    return (
        np.concatenate([empty, *(begins for begins, _ in parts)]),
        np.concatenate([empty, *(ends for _, ends in parts)]),
    )


def clipped(intervals: Intervals, total_ps: int) -> Intervals:
    """The parts of the intervals in [0, total_ps]."""
    begins, ends = intervals
    begins, ends = np.clip(begins, 0, total_ps), np.clip(ends, 0, total_ps)
    nonempty = ends > begins
    return begins[nonempty], ends[nonempty]


def length_ps(intervals: Intervals) -> int:
    """The time that the intervals cover together."""
    begins, ends = union(*intervals)
    return int((ends - begins).sum())


def by_priority(layers: Sequence[Intervals], total_ps: int) -> list[int]:
    """The time that each layer covers and no layer before it; last, the time that none covers."""
    covered, lengths = 0, list[int]()
    merged: Intervals = joined([])
    for layer in layers:
        merged = union(*joined([merged, clipped(layer, total_ps)]))
        reached = int((merged[1] - merged[0]).sum())
        # What a layer adds to the union of the layers before it is the time of this layer alone.
        lengths.append(reached - covered)
        covered = reached
    return [*lengths, total_ps - covered]


class Coverage(Struct, frozen=True):
    """The time before any instant that disjoint intervals cover."""

    begins: Times
    ends: Times
    before: Times

    @classmethod
    def of(cls, begins: Times, ends: Times) -> "Coverage":
        """The coverage of the union of the intervals."""
        begins, ends = union(begins, ends)
        before = np.zeros(len(begins) + 1, np.int64)
        np.cumsum(ends - begins, out=before[1:])
        return cls(begins, ends, before)

    def until(self, times: Times) -> Times:
        """The covered time before each of these times."""
        if not len(self.begins):
            return np.zeros(len(times), np.int64)
        interval = np.searchsorted(self.begins, times, side="right") - 1
        inside = np.minimum(times, self.ends[interval]) - self.begins[interval]
        return np.where(interval < 0, 0, self.before[interval] + inside)
