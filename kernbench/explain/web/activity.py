"""Activity of programs and engines over time, as tracks of intervals.

A track is one engine of one PE, the kernels of a PE, the waits of its programs for one cause, or a
stream of the host. An interval is one operation, as long as all of them fit the page; else those of
the longest tracks are joined.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.records import Columns, RecordedRun
from kernbench.explain.web.interval_merging import joined, limit_of_tracks
from kernbench.explain.why.intervals import Coverage, length_ps
from kernbench.explain.why.parts import COMPUTE_ENGINES
from runtime.core.run_tables import COMMANDS, NONE, OPS, PROGRAMS, STEPS

MOST_INTERVALS = 150_000
"""Intervals in a page: at 40 bytes each, 6 MB."""
MOST_CELLS = 60_000
"""Bins in which an engine of a SIP is active, in a page."""
LEAST_BINS = 512
KERNELS, WAIT, STREAM, STREAM_WAIT = "kernels", "waits for ", "stream ", "waits in stream "
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

    @property
    def busy_ps(self) -> int:
        """The time in which any of its operations is active."""
        return length_ps((self.begins, self.ends))


class PageActivity:
    """The tracks of a run; a track has at most `limit` intervals."""

    def __init__(
        self,
        records: RecordedRun,
        most_intervals: int = MOST_INTERVALS,
        most_cells: int = MOST_CELLS,
    ) -> None:
        self.tracks = [track for sip in records.sips for track in _tracks(records, sip)]
        self.total_ps = records.total_ps
        counts = [track.operations for track in self.tracks]
        self.operations = sum(counts)
        self.limit = limit_of_tracks(counts, most_intervals)
        self.joined_tracks = sum(count > self.limit for count in counts)
        groups = {(track.sip, track.engine) for track in self.tracks}
        # A power of two times 1,024 ps, as the bins of links.
        self.bin_ps = 1024
        while self.total_ps > self.bin_ps * min(
            LEAST_BINS, max(most_cells // max(len(groups), 1), 16)
        ):
            self.bin_ps *= 2

    def intervals(self) -> dict[str, list[int]]:
        """The intervals of all tracks: `track`, begin, end, index of the name of the first
        operation, number of operations, and the time in which any of them is active.
        """
        columns = ("begin_ps", "end_ps", "name", "count", "active_ps")
        intervals: dict[str, list[int]] = {key: [] for key in ("track", *columns)}
        names = self.names
        for index, track in enumerate(self.tracks):
            each = joined(track.begins, track.ends, self.limit)
            codes = np.array([names[name] for name in track.names])[track.name_codes[each.first]]
            intervals["track"] += [index] * len(each.first)
            values = (each.begins, each.ends, codes, each.counts, each.active_ps)
            for key, column in zip(columns, values, strict=True):
                intervals[key] += column.tolist()
        return intervals

    @property
    def names(self) -> dict[str, int]:
        """The names of operations, numbered."""
        return {
            name: number
            for number, name in enumerate(sorted({n for t in self.tracks for n in t.names}))
        }

    def cells(self) -> dict[str, list[Any]]:
        """The time in which the engine of a PE is active, summed over the PEs, for each SIP,
        engine and bin with activity.
        """
        edges = np.arange(0, self.total_ps + self.bin_ps, self.bin_ps)
        sums: dict[tuple[int, str], Array] = {}
        for track in self.tracks:
            active = Coverage.of(track.begins, track.ends).until(edges)
            key = track.sip, track.engine
            sums[key] = sums.get(key, 0) + np.diff(active)
        cells: dict[str, list[Any]] = {key: [] for key in ("sip", "engine", "bin", "busy_ps")}
        for (sip, engine), busy in sorted(sums.items()):
            bins = np.flatnonzero(busy)
            cells["sip"] += [sip] * len(bins)
            cells["engine"] += [engine] * len(bins)
            cells["bin"] += bins.tolist()
            cells["busy_ps"] += busy[bins].tolist()
        return cells

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
            "busy_ps",
        )
        return {key: [getattr(track, key) for track in self.tracks] for key in keys}


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
    yield from _streams(sip, records.table(COMMANDS, sip))


def _streams(sip: int, commands: Columns) -> Iterator[ActivityTrack]:
    """Tracks of each stream: commands from their begin at the IO_CPU, and their waits before."""
    commands = commands.take((commands["begun_ps"] != NONE) & (commands["end_ps"] != NONE))
    waited = commands["begun_ps"] > commands["departed_ps"]
    # Without an earlier command that is the way from the host.
    waiting = commands.take((commands["after"] != NONE) & waited)
    for rows, title, begin, end in (
        (commands, STREAM, "begun_ps", "end_ps"),
        (waiting, STREAM_WAIT, "departed_ps", "begun_ps"),
    ):
        streams, codes = np.unique(rows["stream"], return_inverse=True)
        nowhere = np.full(len(rows), NONE)
        yield from _grouped(
            sip,
            rows,
            tuple(f"{title}{stream}" for stream in streams),
            codes,
            rows[begin],
            rows.text("why"),
            cubes=nowhere,
            pes=nowhere,
            ends=rows[end],
        )


def _grouped(
    sip: int,
    rows: Columns,
    engines: tuple[str, ...],
    codes: Array,
    begins: Array,
    names: Any,
    **given: Array,
) -> Iterator[ActivityTrack]:
    """The rows by cube, PE and engine; `given` are cubes, PEs and ends of tables without them."""
    cubes = given["cubes"] if "cubes" in given else rows["cube"]
    pes = given["pes"] if "pes" in given else rows["pe"]
    ends = given["ends"] if "ends" in given else rows["end_ps"]
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
    """The sort key of the row of an engine: kernels, engines that compute, others, waits."""
    if engine == KERNELS:
        return 0, engine
    if engine.startswith((WAIT, STREAM_WAIT)):
        return 3, engine
    return (1 if engine in COMPUTE_ENGINES else 2), engine
