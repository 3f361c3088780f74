"""Timeline of a SIP in a trace: its tracks as paths, each with slices.

SIP 0 / host / stream 1              commands
SIP 0 / program                      the rank program and its steps
SIP 0 / cube 3 / PE 2 / kernels      kernels and their steps
SIP 0 / cube 3 / PE 2 / pe_dma       operations, in as many lanes as overlap
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kernbench.explain.records import RecordedRun
from kernbench.explain.records.columns import Columns, Numbers, Texts
from kernbench.explain.records.issuing_steps import lines_of_operations
from kernbench.explain.trace.lanes import apart
from kernbench.explain.trace.selection import TracePart
from runtime.core.run_tables import COMMANDS, NONE, OPS, PROGRAMS, RANK_PROGRAM, STEPS

TrackPath = tuple[str, ...]
Arguments = dict[str, str | int]
PROGRAM, HOST = "program", "host and IO chiplet"
"""Tracks of a SIP."""
_ARRIVAL = "arrival"


@dataclass(frozen=True)
class Slices:
    """The slices of one track, in the order of their begins; those of a lane nest.

    Slice i has the name `names[i]`, and `rows[i]` of `columns` describes it; `lines[i]` is its line
    of source, or empty.
    """

    path: TrackPath
    columns: Columns
    rows: Numbers
    begins_ps: Numbers
    ends_ps: Numbers
    names: Texts
    lanes: Numbers
    lines: Texts | None = None
    within: "Slices | None" = None
    """Slices of the same track inside of these, such as the steps of a program."""

    def arguments(self, slice_index: int) -> Arguments:
        """The columns of the table for a slice, besides its name and its times."""
        row = int(self.rows[slice_index])
        arguments: Arguments = {
            "start_ps": int(self.begins_ps[slice_index]),
            "end_ps": int(self.ends_ps[slice_index]),
        }
        if self.lines is not None and self.lines[slice_index]:
            arguments["line"] = self.lines[slice_index]
        for column in _SHOWN[self.columns.table.name]:
            if column in self.columns.texts:
                text = self.columns.text(column)[row]
                if text:
                    arguments[column] = text
            elif (value := int(self.columns[column][row])) not in (0, NONE):
                arguments[column] = hex(value) if column.endswith("address") else value
        return arguments


_SHOWN = {
    OPS.name: (
        *("nbytes", "address", "read_address", "requested_ps"),
        *("cause", "link_ps", "link", "memory_ps"),
    ),
    PROGRAMS.name: ("command", "line"),
    STEPS.name: ("line", "issued_ps", "cause", "direction", "peer_sip", "peer_cube", "peer_pe"),
    COMMANDS.name: ("command", "kind", "line", "departed_ps", "begun_ps", "after"),
}


def timeline(records: RecordedRun, sip: int, selection: TracePart) -> Iterator[Slices]:
    """The tracks of a SIP in the interval of a selection."""
    yield from _programs(records, sip, selection)
    yield from _commands(records.table(COMMANDS, sip), sip, selection)
    yield from _operations(records, sip, selection)


def root(sip: int) -> TrackPath:
    """The path of a SIP."""
    return (f"SIP {sip}",)


def place(sip: int, cube: int, pe: int) -> TrackPath:
    """The path of the host and IO chiplet, of a cube, or of a PE."""
    if cube == NONE:
        return (*root(sip), HOST)
    return (*root(sip), f"cube {cube}", *((f"PE {pe}",) if pe != NONE else ()))


def _commands(commands: Columns, sip: int, selection: TracePart) -> Iterator[Slices]:
    chosen = selection.rows(commands, "submitted_ps")
    for stream in np.unique(commands["stream"][chosen]).tolist():
        rows = np.flatnonzero(chosen & (commands["stream"] == stream))
        # On the device commands of a stream follow each other; the host submits them before.
        begins_ps = commands["begun_ps"][rows]
        yield _slices(
            (*place(sip, NONE, NONE), f"stream {stream}"),
            commands,
            rows,
            np.where(begins_ps == NONE, commands["submitted_ps"][rows], begins_ps),
            commands["end_ps"][rows],
            commands.text("why"),
        )


def _programs(records: RecordedRun, sip: int, selection: TracePart) -> Iterator[Slices]:
    programs, steps = records.table(PROGRAMS, sip), records.table(STEPS, sip)
    tracks: dict[TrackPath, list[int]] = {}
    for row in np.flatnonzero(selection.rows(programs, "begin_ps")).tolist():
        tracks.setdefault(_program_track(programs, sip, row), []).append(row)
    chosen_steps = np.flatnonzero(selection.rows(steps, "begin_ps"))
    for track, rows in tracks.items():
        of_track = np.array(rows, np.int64)
        outer = _slices(
            track,
            programs,
            of_track,
            programs["begin_ps"][of_track],
            programs["end_ps"][of_track],
            _named(programs.text("kernel")),
        )
        numbers = programs["program"][outer.rows]
        inside = chosen_steps[np.isin(steps["program"][chosen_steps], numbers)]
        inner = _slices(
            track,
            steps,
            inside,
            steps["begin_ps"][inside],
            steps["end_ps"][inside],
            steps.text("operation"),
        )
        # A step is a part of its program, so it is in the same lane.
        order = np.argsort(numbers)
        program = np.searchsorted(numbers[order], steps["program"][inner.rows])
        yield replace(outer, within=replace(inner, lanes=outer.lanes[order][program]))


def _named(kernels: Texts) -> Texts:
    """The names of programs; a rank program has none in its table."""
    return Texts(kernels.codes, tuple(each or "rank program" for each in kernels.values))


def _program_track(programs: Columns, sip: int, row: int) -> TrackPath:
    if programs["program"][row] == RANK_PROGRAM:
        return (*root(sip), PROGRAM)
    of_pe = place(sip, int(programs["cube"][row]), int(programs["pe"][row]))
    return (*of_pe, f"kernels ({programs.text('thread')[row]})")


def _operations(records: RecordedRun, sip: int, selection: TracePart) -> Iterator[Slices]:
    ops = records.table(OPS, sip)
    lines = lines_of_operations(ops, records.table(STEPS, sip))
    rows = np.flatnonzero(selection.rows(ops))
    engines = ops.text("engine")
    key = np.stack([ops["cube"][rows], ops["pe"][rows], engines.codes[rows]])
    different, of_row = np.unique(key, axis=1, return_inverse=True)
    of_row, count = of_row.reshape(-1), len(different.T)
    is_arrival = ops.text("name").equal(_ARRIVAL)
    order: Numbers = np.argsort(of_row, kind="stable")
    numbers: Numbers = np.arange(count + 1)
    bounds: Numbers = np.searchsorted(of_row[order], numbers)
    for track in range(count):
        cube, pe, engine = (int(each) for each in different[:, track])
        of_track = rows[order[bounds[track] : bounds[track + 1]]]
        # A message is on its way until it arrives, and the way is that of links: one moment.
        begins_ps = np.where(
            is_arrival[of_track], ops["end_ps"][of_track], ops["start_ps"][of_track]
        )
        yield _slices(
            (*place(sip, cube, pe), engines.values[engine]),
            ops,
            of_track,
            begins_ps,
            ops["end_ps"][of_track],
            ops.text("name"),
            lines=lines,
        )


def _slices(
    path: TrackPath,
    columns: Columns,
    rows: Numbers,
    begins_ps: Numbers,
    ends_ps: Numbers,
    names: Texts,
    *,
    lines: Texts | None = None,
) -> Slices:
    order = np.lexsort((ends_ps, begins_ps))
    rows, begins_ps, ends_ps = rows[order], begins_ps[order], ends_ps[order]
    return Slices(
        path=path,
        columns=columns,
        rows=rows,
        begins_ps=begins_ps,
        ends_ps=ends_ps,
        names=names.take(rows),
        lanes=apart(begins_ps, ends_ps),
        lines=None if lines is None else lines.take(rows),
    )
