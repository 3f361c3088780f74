"""The counters of a trace: requests and slots of PEs over time, and the loads of links.

- outstanding DMA: requests of a DMA engine between their start and their end
- DMA queue: requests that wait for a channel
- scratch: bytes of TCM that the kernels of a PE use for their values
- tile buffers: bytes of TCM in which the scheduler of a PE holds tiles of products
- full slots: messages in the rings of a PE, from their arrival until they are copied out, or until
  the kernel releases a message that it has received in place
- link load: share of a time bin in which a link is busy
- link queue: mean number of packets that wait for a link
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.records import Columns, RecordedRun
from kernbench.explain.records.columns import Mask, Numbers
from kernbench.explain.trace.lanes import level
from kernbench.explain.trace.messages import ARRIVAL, RECEIVE
from kernbench.explain.trace.selection import TracePart
from kernbench.explain.trace.tile_buffers import tile_levels
from kernbench.explain.trace.timeline import TrackPath, place, root
from runtime.core.run_tables import LINKS, NONE, OPS, PROGRAMS, STEPS

_DMA, _RELEASE = "pe_dma", "release"


@dataclass(frozen=True)
class Counter:
    """A value that changes at `times_ps`, in ascending order, and holds until the next change."""

    path: TrackPath
    unit: str
    times_ps: Numbers
    values: Numbers | NDArray[np.float64]

    def within(self, selection: TracePart) -> "Counter":
        """The part in an interval; the value at its begin holds there."""
        first = int(np.searchsorted(self.times_ps, selection.begin_ps, side="right")) - 1
        last = int(np.searchsorted(self.times_ps, selection.end_ps, side="right"))
        times_ps = np.maximum(self.times_ps[max(first, 0) : last], selection.begin_ps)
        return Counter(self.path, self.unit, times_ps, self.values[max(first, 0) : last])


def counters(records: RecordedRun, selection: TracePart) -> Iterator[Counter]:
    """The counters of the selected ranks, in the interval."""
    for sip in selection.sips:
        for counter in (
            *_requests(records.table(OPS, sip), sip),
            *_scratch(records.table(PROGRAMS, sip), records.table(STEPS, sip), sip),
            *_full_slots(records, sip),
            *_tile_buffers(records, sip),
        ):
            yield counter.within(selection)
        for counter in _links(records.table(LINKS, sip), sip, records.bin_ps):
            yield counter.within(selection)


def _requests(ops: Columns, sip: int) -> Iterator[Counter]:
    of_engine = ops.text("engine").equal(_DMA)
    for cube, pe, rows in _by_pe(ops, of_engine):
        track = place(sip, cube, pe)
        started, ended = ops["start_ps"][rows], ops["end_ps"][rows]
        yield _counter((*track, "outstanding DMA"), "requests", started, ended)
        requested = ops["requested_ps"][rows]
        waited = requested < started
        if waited.any():
            yield _counter((*track, "DMA queue"), "requests", requested[waited], started[waited])


def _scratch(programs: Columns, steps: Columns, sip: int) -> Iterator[Counter]:
    # By program and time; a program has the scratch of its first step from nothing.
    order = np.lexsort((steps["begin_ps"], steps["program"]))
    numbers, used = steps["program"][order], steps["scratch_bytes"][order].astype(np.int64)
    is_first = np.append(True, numbers[1:] != numbers[:-1])[: len(numbers)]
    grown = used - np.where(is_first, 0, np.append(0, used[:-1])[: len(used)])
    begins_ps = steps["begin_ps"][order]
    last = np.flatnonzero(np.append(is_first[1:], True)[: len(numbers)] & (used != 0))
    for cube, pe, rows in _by_pe(programs, programs["pe"] != NONE):
        chosen = np.isin(numbers, programs["program"][rows]) & (grown != 0)
        ended = rows[np.argsort(programs["program"][rows])]
        of_last = last[np.isin(numbers[last], programs["program"][ended])]
        ends_ps = programs["end_ps"][ended][np.isin(programs["program"][ended], numbers[of_last])]
        events = [(begins_ps[chosen], grown[chosen]), (ends_ps, -used[of_last])]
        if chosen.any():
            yield Counter((*place(sip, cube, pe), "scratch"), "bytes", *level(events))


def _tile_buffers(records: RecordedRun, sip: int) -> Iterator[Counter]:
    for cube, pe, *levels in tile_levels(records.table(OPS, sip), records.topology, sip):
        yield Counter((*place(sip, cube, pe), "tile buffers"), "bytes", *levels)


def _full_slots(records: RecordedRun, sip: int) -> Iterator[Counter]:
    ops, programs, steps = (records.table(table, sip) for table in (OPS, PROGRAMS, STEPS))
    name = ops.text("name")
    arrived, copied = (np.flatnonzero(name.equal(each)) for each in (ARRIVAL, RECEIVE))
    released = np.flatnonzero(steps.text("operation").equal(_RELEASE))
    row_of_program = np.zeros(int(programs["program"].max(initial=0)) + 1, np.int64)
    row_of_program[programs["program"]] = np.arange(len(programs))
    releasing = row_of_program[steps["program"][released]]
    cubes, pes = (
        np.concatenate([ops[each][arrived], ops[each][copied], programs[each][releasing]])
        for each in ("cube", "pe")
    )
    ends = ops["end_ps"]
    times_ps = np.concatenate([ends[arrived], ends[copied], steps["end_ps"][released]])
    changes = np.append(np.ones(len(arrived), np.int64), -np.ones(len(copied) + len(released), int))
    for cube, pe, rows in _by_coordinates(cubes, pes):
        times, levels = level([(times_ps[rows], changes[rows])])
        # The end of a kernel releases the rest of its messages, and no record has when.
        if records.run.error is not None or not levels[-1]:
            yield Counter((*place(sip, cube, pe), "full slots"), "slots", times, levels)


def _by_pe(ops: Columns, chosen: Mask) -> Iterator[tuple[int, int, Numbers]]:
    """The chosen operations of every PE."""
    rows = np.flatnonzero(chosen)
    for cube, pe, of_pe in _by_coordinates(ops["cube"][rows], ops["pe"][rows]):
        yield cube, pe, rows[of_pe]


def _by_coordinates(cubes: Numbers, pes: Numbers) -> Iterator[tuple[int, int, Numbers]]:
    """The rows of every PE."""
    different, of_row = np.unique(np.stack([cubes, pes]), axis=1, return_inverse=True)
    for index, (cube, pe) in enumerate(different.T.tolist()):
        yield cube, pe, np.flatnonzero(of_row.reshape(-1) == index)


def _counter(path: TrackPath, unit: str, begins_ps: Numbers, ends_ps: Numbers) -> Counter:
    """The number of intervals that have begun and not ended."""
    ones = np.ones(len(begins_ps), np.int64)
    return Counter(path, unit, *level([(begins_ps, ones), (ends_ps, -ones)]))


def _links(links: Columns, sip: int, bin_ps: int) -> Iterator[Counter]:
    names = links.text("link")
    order = np.lexsort((links["bin"], names.codes))
    bounds = np.searchsorted(names.codes[order], np.arange(len(names.values) + 1))
    for code, name in enumerate(names.values):
        rows = order[bounds[code] : bounds[code + 1]]
        if not len(rows):
            continue
        track = (*root(sip), "links", name)
        bins = links["bin"][rows].astype(np.int64)
        share = links["busy_ps"][rows] / bin_ps * 100
        yield Counter((*track, "load"), "%", *_binned(bins, share, bin_ps))
        # The time of all queueing packets over the time of the bin is their mean number (J. D. C.
        # Little, A proof for the queuing formula L = lambda W, 1961).
        queued = links["queued_ps"][rows]
        if queued.any():
            yield Counter((*track, "queue"), "packets", *_binned(bins, queued / bin_ps, bin_ps))


def _binned(
    bins: Numbers, values: NDArray[np.float64], bin_ps: int
) -> tuple[Numbers, NDArray[np.float64]]:
    """Values of bins as a level; a bin without a row has none."""
    ends = bins + 1
    gaps = ends[~np.isin(ends, bins)]
    times = np.concatenate([bins, gaps]) * bin_ps
    levels = np.concatenate([values, np.zeros(len(gaps))])
    order = np.argsort(times, kind="stable")
    return times[order], levels[order]
