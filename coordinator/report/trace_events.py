"""Converts the op log to the Trace Event Format, which Perfetto and chrome://tracing open.

A SIP is a process, a component is a thread, an operation is a slice, and a transfer between SIPs
is a flow: an arrow from the end of the sender's slice to the arrival, which is a moment. Slices of
one thread must nest; operations that overlap on one component therefore get several lanes, each a
thread.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct, field

from coordinator.op_logs import LoggedOp, OpLogs, Span, Track
from runtime.core.program_ranges import ProgramRange
from runtime.core.trace import Operand, OpRecord

PS_PER_US = 1_000_000
TAIL = b'],"displayTimeUnit":"ns"}'
"""The end of the text of a trace."""
_Lane = tuple[Track, int]
_encode = msgspec.json.Encoder().encode


class TraceEvent(Struct, frozen=True, omit_defaults=True):
    """One event; `ts` and `dur` are microseconds, as the format requires, with ps resolution."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: float | None = None
    dur: float | None = None
    cat: str = ""
    bind_id: str = ""
    flow_out: bool = False
    flow_in: bool = False
    args: dict[str, str | int] = field(default_factory=dict[str, str | int])


class TraceWriter:
    """Gives the text of a trace piece by piece: `head`, then `operation` for every record in the
    order of the merged log, then `ranges` for every SIP, then `TAIL`.
    """

    def __init__(self, logs: OpLogs) -> None:
        self._lane_of_op = array("L")
        lanes = self._assign_lanes(logs.spans())
        # Perfetto reads a pid or tid of 0 as the idle task, and expects thread ids that are unique
        # in the whole trace.
        self._tids = {lane: tid for tid, lane in enumerate(sorted(lanes), start=1)}
        self._tid_of_lane = [self._tids[lane] for lane in lanes]
        self._written = 0
        self._next_tid = len(lanes) + 1
        self._flows: dict[tuple[int, int, int], int] = {}

    def head(self) -> bytes:
        """The begin of the text, with the names of all processes and threads."""
        names = [*_process_names({track.sip for track, _ in self._tids})]
        names += [event for lane, tid in self._tids.items() for event in _thread_name(lane, tid)]
        return b'{"traceEvents":[' + _encode(names)[1:-1]

    def operation(self, op: LoggedOp) -> bytes:
        """The next operation, with its flow if it is a transfer between SIPs."""
        tid = self._tid_of_lane[self._lane_of_op[self._written]]
        self._written += 1
        flow = 0
        if op.record.flow is not None:
            flow = self._flows.setdefault(op.record.flow, len(self._flows) + 1)
        # The names of processes precede it, so there is always an event before the comma.
        return b"," + _encode(_slice(op, tid, flow))

    def ranges(self, sip: int, ranges: Sequence[ProgramRange]) -> bytes:
        """The named ranges of the program of a SIP, in threads of their own."""
        events: list[TraceEvent] = []
        for number, lane in enumerate(nested(ranges)):
            name = f"program #{number + 1}" if number else "program"
            events += _thread_of(sip, self._next_tid, name)
            events += [_range_slice(each, sip, self._next_tid) for each in lane]
            self._next_tid += 1
        return b"," + _encode(events)[1:-1] if events else b""

    def _assign_lanes(self, spans: Iterable[Span]) -> list[_Lane]:
        """All lanes; of every operation the first of its component that is free at its start."""
        lanes_of_track: defaultdict[Track, list[tuple[int, int]]] = defaultdict(list)
        lanes: list[_Lane] = []
        for span in spans:
            busy = lanes_of_track[span.track]
            for position, (end_ps, lane) in enumerate(busy):
                if end_ps <= span.start_ps:
                    busy[position] = (span.end_ps, lane)
                    break
            else:
                lane = len(lanes)
                lanes.append((span.track, len(busy)))
                busy.append((span.end_ps, lane))
            self._lane_of_op.append(lane)
        return lanes


def _process_names(sips: set[int]) -> Iterator[TraceEvent]:
    for sip in sorted(sips):
        yield TraceEvent("process_name", "M", sip + 1, 0, args={"name": f"SIP {sip}"})
        yield TraceEvent("process_sort_index", "M", sip + 1, 0, args={"sort_index": sip})


def _thread_name(lane: _Lane, tid: int) -> Iterator[TraceEvent]:
    track, number = lane
    path = OpRecord(track.engine, "", 0, 0, track.cube, track.pe).track
    yield from _thread_of(track.sip, tid, f"{path} #{number + 1}" if number else path)


def _thread_of(sip: int, tid: int, name: str) -> Iterator[TraceEvent]:
    yield TraceEvent("thread_name", "M", sip + 1, tid, args={"name": name})
    yield TraceEvent("thread_sort_index", "M", sip + 1, tid, args={"sort_index": tid})


def nested(ranges: Iterable[ProgramRange]) -> list[list[ProgramRange]]:
    """The ranges in lanes, in each of which any two are apart or one is inside the other."""
    lanes: list[list[ProgramRange]] = []
    open_of_lane: list[list[int]] = []
    # Of ranges that begin together, the outer one comes first, which ends last in the program.
    in_order = sorted(enumerate(ranges), key=lambda at: (at[1].start_ps, -at[1].end_ps, -at[0]))
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


def _slice(op: LoggedOp, tid: int, flow: int) -> TraceEvent:
    record = op.record
    # A viewer draws the arrow to the begin of a slice, and the bytes are there at the end.
    start_ps = record.end_ps if record.flow_end else record.start_ps
    # Division by a constant: equal picoseconds give equal microseconds in every run.
    return TraceEvent(
        name=record.name,
        ph="X",
        pid=op.sip + 1,
        tid=tid,
        ts=start_ps / PS_PER_US,
        dur=(record.end_ps - start_ps) / PS_PER_US,
        cat=record.engine,
        bind_id=hex(flow) if flow else "",
        flow_out=bool(flow) and not record.flow_end,
        flow_in=record.flow_end,
        args=_arguments(record),
    )


def _arguments(record: OpRecord) -> dict[str, str | int]:
    arguments: dict[str, str | int] = {"start_ps": record.start_ps, "end_ps": record.end_ps}
    if record.nbytes:
        arguments["bytes"] = record.nbytes
    if record.address:
        arguments["address"] = f"{record.address:#x}"
    if record.shape or record.dtype:
        arguments["operand"] = _block(record.dtype, record.shape, record.strides)
    if record.inputs:
        arguments["inputs"] = ", ".join(map(_input, record.inputs))
    return arguments


def _input(operand: Operand | float) -> str:
    if not isinstance(operand, Operand):
        return str(operand)
    return f"{_block(operand.dtype, operand.shape, operand.strides)} at {operand.address:#x}"


# A run has few kinds of blocks, and millions of operations on them.
@lru_cache(maxsize=4096)
def _block(dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> str:
    return f"{dtype}{list(shape)}" + (f" strides {list(strides)}" if strides else "")
