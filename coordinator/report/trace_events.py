"""Converts the op log to the Trace Event Format, which Perfetto and chrome://tracing open.

A SIP is a process, a component is a thread, or several (the lanes of `log_text`), an operation is a
slice, and a transfer between SIPs is a flow: an arrow from the end of the sender's slice to the
arrival, which is a moment.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from coordinator.report.trace_event import PS_PER_US, TraceEvent
from coordinator.watch.op_logs import Lane
from runtime.core.program_ranges import ProgramRange
from runtime.core.trace import OpRecord

TAIL = b'],"displayTimeUnit":"ns"}'
"""The end of the text of a trace."""
_encode = msgspec.json.Encoder().encode


class TraceThreads:
    """The threads of a trace: those of the lanes of its operations, and those of named ranges."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        # Perfetto reads a pid or tid of 0 as the idle task, and expects thread ids that are unique
        # in the whole trace.
        self._tids = {lane: tid for tid, lane in enumerate(sorted(lanes), start=1)}
        self.of_lanes = array("I", [self._tids[lane] for lane in lanes])
        self._next_tid = len(lanes) + 1

    def head(self) -> bytes:
        """The begin of the text, with the names of all processes and threads."""
        names = [*_process_names({track.sip for track, _ in self._tids})]
        names += [event for lane, tid in self._tids.items() for event in _thread_name(lane, tid)]
        return b'{"traceEvents":[' + _encode(names)[1:-1]

    def ranges(self, sip: int, ranges: Sequence[ProgramRange]) -> bytes:
        """The named ranges of the program of a SIP, in threads of their own."""
        events: list[TraceEvent] = []
        for number, lane in enumerate(nested(ranges)):
            name = f"program #{number + 1}" if number else "program"
            events += _thread_of(sip, self._next_tid, name)
            events += [_range_slice(each, sip, self._next_tid) for each in lane]
            self._next_tid += 1
        return b"," + _encode(events)[1:-1] if events else b""


def _process_names(sips: set[int]) -> Iterator[TraceEvent]:
    for sip in sorted(sips):
        yield TraceEvent("process_name", "M", sip + 1, 0, args={"name": f"SIP {sip}"})
        yield TraceEvent("process_sort_index", "M", sip + 1, 0, args={"sort_index": sip})


def _thread_name(lane: Lane, tid: int) -> Iterator[TraceEvent]:
    track, number = lane
    path = OpRecord(track.engine, "", 0, 0, track.cube, track.pe).track
    yield from _thread_of(track.sip, tid, f"{path} #{number + 1}" if number else path)


def _thread_of(sip: int, tid: int, name: str) -> Iterator[TraceEvent]:
    yield TraceEvent("thread_name", "M", sip + 1, tid, args={"name": name})
    yield TraceEvent("thread_sort_index", "M", sip + 1, tid, args={"sort_index": tid})


def _outer_first(numbered: tuple[int, ProgramRange]) -> tuple[int, int, int]:
    number, each = numbered
    return each.start_ps, -each.end_ps, -number


def nested(ranges: Iterable[ProgramRange]) -> list[list[ProgramRange]]:
    """The ranges in lanes, in each of which any two are apart or one is inside the other."""
    lanes: list[list[ProgramRange]] = []
    open_of_lane: list[list[int]] = []
    # Of ranges that begin together, the outer one comes first, which ends last in the program.
    in_order = sorted(enumerate(ranges), key=_outer_first)
    for _, each in in_order:
        for lane, ends_ps in zip(lanes, open_of_lane, strict=True):
            while ends_ps and ends_ps[-1] <= each.start_ps:
                ends_ps.pop()
            if not ends_ps or each.end_ps <= ends_ps[-1]:
                lane.append(each)
                ends_ps.append(each.end_ps)
                break
        else:
            lanes.append([each])
            open_of_lane.append([each.end_ps])
    return lanes


def _range_slice(each: ProgramRange, sip: int, tid: int) -> TraceEvent:
    return TraceEvent(
        name=each.name,
        ph="X",
        pid=sip + 1,
        tid=tid,
        ts=each.start_ps / PS_PER_US,
        dur=(each.end_ps - each.start_ps) / PS_PER_US,
        cat="program",
        args={"start_ps": each.start_ps, "end_ps": each.end_ps},
    )
