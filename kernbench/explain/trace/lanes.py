"""Divides the slices of a track into lanes: slices of one lane follow each other or nest."""

from collections.abc import Sequence

import numpy as np

from kernbench.explain.records.columns import Numbers


def apart(begins_ps: Numbers, ends_ps: Numbers) -> Numbers:
    """The first lane that is free at the begin of each slice; slices of a lane do not overlap."""
    lanes = np.zeros(len(begins_ps), np.int64)
    free_ps: list[int] = []
    order = np.lexsort((ends_ps, begins_ps)).tolist()
    begins, ends = begins_ps.tolist(), ends_ps.tolist()
    for row in order:
        # Slices in the order of their begins, each in the lowest free lane: a lane is opened only
        # where as many slices overlap, so no assignment has fewer lanes.
        free = (lane for lane, end_ps in enumerate(free_ps) if end_ps <= begins[row])
        lane = next(free, len(free_ps))
        free_ps[lane : lane + 1] = [ends[row]]
        lanes[row] = lane
    return lanes


def level(events: Sequence[tuple[Numbers, Numbers]]) -> tuple[Numbers, Numbers]:
    """The level of a counter: at each of the times, ascending, its value from then on.

    `events` are times and the changes at them.
    """
    times = np.concatenate([each[0] for each in events])
    changes = np.concatenate([each[1] for each in events])
    order = np.argsort(times, kind="stable")
    times, sums = times[order], np.cumsum(changes[order])
    # Of several changes at one time the last sum holds: what ends makes room for what begins.
    last = np.flatnonzero(np.append(times[1:] != times[:-1], True)) if len(times) else times
    return times[last], sums[last]
