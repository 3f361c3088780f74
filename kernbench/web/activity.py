"""What programs and engines do over time, as tracks of intervals.

A track is one engine of one PE, the kernels of a PE, or the waits of its programs for one cause. An
interval is one operation, as long as all of them fit the page; else operations of a track with
gaps below a resolution are one interval, with their number and the time in which any was active.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench.run_records import Columns, RecordedRun
from kernbench.why.parts import COMPUTE_ENGINES
from runtime.core.run_tables import OPS, PROGRAMS, STEPS

MOST_INTERVALS = 60_000
"""Intervals in a page: at 30 bytes each, 1.8 MB."""
MOST_CELLS = 60_000
"""Bins in which an engine of a SIP is active, in a page."""
LEAST_BINS = 512
KERNELS, WAIT = "kernels", "waits for "
Array = NDArray[Any]


@dataclass
class ActivityTrack:
    """The activity of one engine of a PE, in ascending order of begins."""

    sip: int
    cube: int
    pe: int
    engine: str
    begins: Array
    ends: Array
    names: list[str]
    name_codes: Array
    nbytes: int = 0
    queued_ps: int = 0
    link_ps: int = 0
    memory_ps: int = 0

    @property
    def operations(self) -> int:
        """The number of its operations."""
        return len(self.begins)

    def merged(self, resolution_ps: int) -> tuple[Array, Array, Array]:
        """Begins and ends where gaps below the resolution are filled, and the first row of each."""
        reach = np.maximum.accumulate(self.ends)
        first = np.flatnonzero(np.r_[True, self.begins[1:] > reach[:-1] + resolution_ps])
        last = np.r_[first[1:], len(self.begins)] - 1
        return self.begins[first], reach[last], first


class PageActivity:
    """The tracks of a run; `resolution_ps` is 0 where each interval is one operation."""

    def __init__(
        self,
        records: RecordedRun,
        most_intervals: int = MOST_INTERVALS,
        most_cells: int = MOST_CELLS,
    ) -> None:
        self.tracks = [track for sip in records.sips for track in _tracks(records, sip)]
        self.total_ps = records.run.total_ps
        self.operations = sum(track.operations for track in self.tracks)
        self.resolution_ps = 0
        count = self.operations
        while count > most_intervals:
            self.resolution_ps = max(2 * self.resolution_ps, 1024)
            if self.resolution_ps > self.total_ps:
                break
            count = sum(len(each.merged(self.resolution_ps)[0]) for each in self.tracks)
        groups = {(track.sip, track.engine) for track in self.tracks}
        # A power of two times 1,024 ps, as the bins of links.
        self.bin_ps = 1024
        while self.total_ps > self.bin_ps * min(
            LEAST_BINS, max(most_cells // max(len(groups), 1), 16)
        ):
            self.bin_ps *= 2

    def intervals(self) -> dict[str, list[int]]:
        """The intervals of all tracks: `track`, begin, end, index of the name, operations in it."""
        found: dict[str, list[int]] = {
            key: [] for key in ("track", "begin_ps", "end_ps", "name", "count")
        }
        names = self.names
        for index, track in enumerate(self.tracks):
            if self.resolution_ps:
                begins, ends, first = track.merged(self.resolution_ps)
                counts = np.diff(np.r_[first, track.operations])
            else:
                begins, ends = track.begins, track.ends
                first, counts = np.arange(track.operations), np.ones(track.operations, np.int64)
            codes = np.array([names[name] for name in track.names])[track.name_codes[first]]
            found["track"] += [index] * len(begins)
            for key, values in zip(
                ("begin_ps", "end_ps", "name", "count"), (begins, ends, codes, counts), strict=True
            ):
                found[key] += values.tolist()
        return found

    @property
    def names(self) -> dict[str, int]:
        """The names of operations, numbered."""
        return {
            name: at for at, name in enumerate(sorted({n for t in self.tracks for n in t.names}))
        }

    def cells(self) -> dict[str, list[Any]]:
        """For each SIP, engine and bin with activity: the time, summed over the PEs, in which the
        engine of a PE is active.
        """
        edges = np.arange(0, self.total_ps + self.bin_ps, self.bin_ps)
        sums: dict[tuple[int, str], Array] = {}
        for track in self.tracks:
            begins, ends, _ = track.merged(0)
            active = _active_before(edges, np.sort(begins), np.sort(ends))
            key = track.sip, track.engine
            sums[key] = sums.get(key, 0) + np.diff(active)
        found: dict[str, list[Any]] = {key: [] for key in ("sip", "engine", "bin", "busy_ps")}
        for (sip, engine), busy in sorted(sums.items()):
            bins = np.flatnonzero(busy)
            found["sip"] += [sip] * len(bins)
            found["engine"] += [engine] * len(bins)
            found["bin"] += bins.tolist()
            found["busy_ps"] += busy[bins].tolist()
        return found

    def counters(self) -> dict[str, list[Any]]:
        """The sums of each track over the run."""
        keys = (
            "sip",
            "cube",
            "pe",
            "engine",
            "operations",
            "nbytes",
            "queued_ps",
            "link_ps",
            "memory_ps",
        )
        found: dict[str, list[Any]] = {key: [getattr(t, key) for t in self.tracks] for key in keys}
        found["busy_ps"] = [int(np.subtract(*t.merged(0)[1::-1]).sum()) for t in self.tracks]
        return found


def _active_before(edges: Array, begins: Array, ends: Array) -> Array:
    """For each edge the active time before it, of disjoint intervals: the sum of edge - begin over
    the begins before it, less the same of the ends.
    """

    def total(times: Array) -> Array:
        counts = np.searchsorted(times, edges)
        return counts * edges - np.r_[0, np.cumsum(times)][counts]

    return total(begins) - total(ends)


def _tracks(records: RecordedRun, sip: int) -> Iterator[ActivityTrack]:
    ops, programs, steps = (records.table(table, sip) for table in (OPS, PROGRAMS, STEPS))
    engines = ops.text("engine")
    yield from _grouped(sip, ops, engines.values, engines.codes, ops["start_ps"], ops.text("name"))
    kernels = np.zeros(len(programs), np.int64)
    yield from _grouped(
        sip, programs, (KERNELS,), kernels, programs["begin_ps"], programs.text("kernel")
    )
    rows = np.full(int(programs["program"].max(initial=-1)) + 1, -1)
    rows[programs["program"]] = np.arange(len(programs))
    waits = steps.take(steps["end_ps"] > steps["issued_ps"])
    waits = waits.take(waits.text("cause").matching(bool))
    of_program = rows[waits["program"]]
    causes = waits.text("cause")
    yield from _grouped(
        sip,
        waits,
        tuple(WAIT + cause for cause in causes.values),
        causes.codes,
        waits["issued_ps"],
        waits.text("operation"),
        cubes=programs["cube"][of_program],
        pes=programs["pe"][of_program],
    )


def _grouped(
    sip: int,
    rows: Columns,
    engines: tuple[str, ...],
    codes: Array,
    begins: Array,
    names: Any,
    **places: Array,
) -> Iterator[ActivityTrack]:
    """The rows by cube, PE and engine."""
    cubes, pes = places.get("cubes"), places.get("pes")
    cubes = rows["cube"] if cubes is None else cubes
    pes = rows["pe"] if pes is None else pes
    ends = rows["end_ps"]
    order = np.lexsort((ends, begins, codes, pes, cubes))
    keys = np.stack([cubes[order], pes[order], codes[order]])
    if keys.shape[1] == 0:
        return
    first = np.flatnonzero(np.r_[True, (np.diff(keys) != 0).any(axis=0)])
    for group in np.split(order, first[1:]):
        head = group[0]
        sums = {}
        if rows.table is OPS:
            sums = {
                "nbytes": int(rows["nbytes"][group].sum()),
                "queued_ps": int((rows["start_ps"][group] - rows["requested_ps"][group]).sum()),
                "link_ps": int(rows["link_ps"][group].sum()),
                "memory_ps": int(rows["memory_ps"][group].sum()),
            }
        used, name_codes = np.unique(names.codes[group], return_inverse=True)
        yield ActivityTrack(
            sip=sip,
            cube=int(cubes[head]),
            pe=int(pes[head]),
            engine=engines[int(codes[head])],
            begins=begins[group].astype(np.int64),
            ends=ends[group].astype(np.int64),
            names=[names.values[int(code)] for code in used],
            name_codes=name_codes,
            **sums,
        )


def engine_order(engine: str) -> tuple[int, str]:
    """Where the row of an engine is: kernels, engines that compute, others, waits."""
    if engine == KERNELS:
        return 0, engine
    if engine.startswith(WAIT):
        return 3, engine
    return (1 if engine in COMPUTE_ENGINES else 2), engine
