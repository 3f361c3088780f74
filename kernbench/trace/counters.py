"""The counters of a trace: requests and slots of PEs over time, and the loads of links.

- outstanding DMA: requests of a DMA engine between their start and their end
- DMA queue: requests that wait for a channel
- scratch: bytes of TCM that the kernels of a PE use for their values
- tile buffers: bytes of TCM in which the scheduler of a PE holds tiles of products
- full slots: messages in the rings of a PE, from their arrival until they are copied out
- link load: share of a time bin in which a link is busy
- link queue: mean number of packets that wait for a link
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernbench.run_records import Columns, RecordedRun
from kernbench.run_records.columns import Mask, Numbers
from kernbench.trace.lanes import level
from kernbench.trace.messages import receives
from kernbench.trace.selection import TracePart
from kernbench.trace.tile_buffers import tile_levels
from kernbench.trace.timeline import TrackPath, place, root
from runtime.core.run_tables import LINKS, NONE, OPS, PROGRAMS, STEPS

_DMA = "pe_dma"


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
    slots = _full_slots(records.tables(OPS))
    for sip in selection.sips:
        for counter in (
            *_requests(records.table(OPS, sip), sip),
            *_scratch(records.table(PROGRAMS, sip), records.table(STEPS, sip), sip),
            *slots.get(sip, ()),
            *_tile_buffers(records, sip),
        ):
            yield counter.within(selection)
        for counter in _links(records.table(LINKS, sip), sip, records.bin_ps):
            yield counter.within(selection)


def _requests(ops: Columns, sip: int) -> Iterator[Counter]:
    of_engine = ops.text("engine").equal(_DMA)
    for cube, pe, rows in _by_pe(ops, of_engine):
        at = place(sip, cube, pe)
        started, ended = ops["start_ps"][rows], ops["end_ps"][rows]
        yield _counter((*at, "outstanding DMA"), "requests", started, ended)
        requested = ops["requested_ps"][rows]
        waited = requested < started
        if waited.any():
            yield _counter((*at, "DMA queue"), "requests", requested[waited], started[waited])


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
    for cube, pe, *found in tile_levels(records.table(OPS, sip), records.topology, sip):
        yield Counter((*place(sip, cube, pe), "tile buffers"), "bytes", *found)


def _full_slots(ops: Mapping[int, Columns]) -> dict[int, list[Counter]]:
    arrivals, copies = receives(ops)
    counters: dict[int, list[Counter]] = {}
    for sip, columns in ops.items():
        mine = np.flatnonzero(arrivals.sips == sip)
        is_chosen = np.zeros(len(columns), np.bool_)
        is_chosen[arrivals.rows[mine]] = True
        copy_of = np.zeros(len(columns), np.int64)
        copy_of[arrivals.rows[mine]] = copies.rows[mine]
        for cube, pe, rows in _by_pe(columns, is_chosen):
            counter = _counter(
                (*place(sip, cube, pe), "full slots"),
                "slots",
                columns["end_ps"][rows],
                columns["end_ps"][copy_of[rows]],
            )
            counters.setdefault(sip, []).append(counter)
    return counters


def _by_pe(ops: Columns, chosen: Mask) -> Iterator[tuple[int, int, Numbers]]:
    """The chosen operations of every PE."""
    rows = np.flatnonzero(chosen)
    both = np.stack([ops["cube"][rows], ops["pe"][rows]])
    different, of_row = np.unique(both, axis=1, return_inverse=True)
    for index in range(different.shape[1]):
        cube, pe = (int(each) for each in different[:, index])
        yield cube, pe, rows[of_row.reshape(-1) == index]


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
        at = (*root(sip), "links", name)
        bins = links["bin"][rows].astype(np.int64)
        share = links["busy_ps"][rows] / bin_ps * 100
        yield Counter((*at, "load"), "%", *_binned(bins, share, bin_ps))
        queued = links["queued_ps"][rows]
        if queued.any():
            yield Counter((*at, "queue"), "packets", *_binned(bins, queued / bin_ps, bin_ps))


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
