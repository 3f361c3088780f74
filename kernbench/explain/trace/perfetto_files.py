"""Writes the traces of a run for Perfetto, several files of consecutive times for a long run."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kernbench.explain.records import RecordedRun
from kernbench.explain.trace.counters import counters
from kernbench.explain.trace.messages import messages
from kernbench.explain.trace.perfetto_file import PerfettoFile, flow_numbers
from kernbench.explain.trace.selection import TracePart
from kernbench.explain.trace.timeline import timeline
from runtime.core.output import OutputFile
from runtime.core.run_tables import OPS, STEPS

SUFFIX = ".pftrace"


class WrittenTrace(NamedTuple):
    """A file, its interval, and the number of its events."""

    path: Path
    begin_ps: int
    end_ps: int
    events: int


def write_perfetto(
    records: RecordedRun, selection: TracePart, directory: Path, most_slices: int
) -> Iterator[WrittenTrace]:
    """Write `trace.pftrace`, or `trace-1.pftrace` and so on where a file would have more than
    `most_slices` operations and steps; a slice that goes on into the next file is in both.
    """
    sends, arrivals = messages(records.tables(OPS))
    flows = flow_numbers(
        zip(
            zip(sends.sips.tolist(), sends.rows.tolist(), strict=True),
            zip(arrivals.sips.tolist(), arrivals.rows.tolist(), strict=True),
            strict=True,
        )
    )
    parts = _parts(records, selection, most_slices)
    for number, part in enumerate(parts, start=1):
        name = f"trace-{number}" if len(parts) > 1 else "trace"
        path = directory / f"{name}{SUFFIX}"
        with OutputFile(path) as file:
            trace = PerfettoFile(file.write, records.run.sips, *flows)
            for sip in part.sips:
                for slices in timeline(records, sip, part):
                    trace.add_slices(sip, slices)
            for counter in counters(records, part):
                trace.add_counter(counter)
            trace.finish()
        yield WrittenTrace(path, part.begin_ps, part.end_ps, trace.events)


def _parts(records: RecordedRun, selection: TracePart, most_slices: int) -> list[TracePart]:
    """The selection in intervals in which about the same number of slices begin."""
    begins_ps = [
        columns[column][selection.rows(columns, column)]
        for sip in selection.sips
        for columns, column in (
            (records.table(OPS, sip), "start_ps"),
            (records.table(STEPS, sip), "begin_ps"),
        )
    ]
    sorted_ps = np.sort(np.concatenate(begins_ps))
    count = max(1, -(-len(sorted_ps) // most_slices))
    cuts = [int(sorted_ps[len(sorted_ps) * part // count]) for part in range(1, count)]
    # Many slices may begin at one time, which is cut once.
    inner = sorted({cut for cut in cuts if selection.begin_ps < cut < selection.end_ps})
    times = [selection.begin_ps, *inner, selection.end_ps]
    return [replace(selection, begin_ps=begin, end_ps=end) for begin, end in pairwise(times)]
