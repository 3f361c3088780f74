"""Joins the intervals of a track until a page can hold them, where the gaps between them are least.

A joined interval has the number of its operations and the time in which any of them is active, so
that it can be drawn as high as its active share: idle time that it covers is not lost.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.why.intervals import Coverage

Array = NDArray[Any]


class JoinedIntervals(NamedTuple):
    """Intervals of one track: their times, the first operation of each, their number, their
    active time.
    """

    begins: Array
    ends: Array
    first: Array
    counts: Array
    active_ps: Array


def limit_of_tracks(counts: Sequence[int], most: int) -> int:
    """The greatest limit for which tracks of at most that many intervals have `most` in all.

    It is at least 1: a track has an interval.
    """
    left, sizes = most, sorted(counts)
    for index, size in enumerate(sizes):
        # The shortest tracks first: what a track leaves of its share is divided among the longer
        # ones.
        share = left // (len(sizes) - index)
        if size > share:
            return max(share, 1)
        left -= size
    return max(sizes, default=1)


def joined(begins: Array, ends: Array, most: int) -> JoinedIntervals:
    """The intervals of a track in ascending order of begins, joined into at most `most`."""
    reach = np.maximum.accumulate(ends)
    first = np.append(0, 1 + _largest(begins[1:] - reach[:-1], most - 1))
    counts = np.diff(np.append(first, len(begins)))
    if len(first) == len(begins):
        return JoinedIntervals(begins, ends, first, counts, ends - begins)
    begun, ended = begins[first], np.maximum.reduceat(ends, first)
    coverage = Coverage.of(begins, ends)
    return JoinedIntervals(
        begun, ended, first, counts, coverage.until(ended) - coverage.until(begun)
    )


def _largest(gaps: Array, most: int) -> Array:
    """The places of the `most` largest gaps in ascending order; of equal ones, evenly spread."""
    if len(gaps) <= most:
        return np.arange(len(gaps))
    if not most:
        return np.zeros(0, np.int64)
    least = np.partition(gaps, len(gaps) - most)[len(gaps) - most]
    larger, equal = np.flatnonzero(gaps > least), np.flatnonzero(gaps == least)
    wanted = most - len(larger)
    spread = equal[(np.arange(1, wanted + 1) * len(equal)) // (wanted + 1)]
    return np.sort(np.append(larger, spread))
