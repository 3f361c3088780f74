"""Converts the op log to the Trace Event Format, which Perfetto and chrome://tracing open.

A SIP is a process, a component is a thread, an operation is a slice, and a transfer between SIPs
is a flow arrow from the slice of the sender to the slice of the receiver. Slices of one thread must
nest; operations that overlap on one component therefore get several lanes, each a thread.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct, field

from coordinator.aggregate import LoggedOp
from runtime.core.trace import Operand, OpRecord

PS_PER_US = 1_000_000
_Lane = tuple[int, int, int, str, int]


class TraceEvent(Struct, frozen=True, omit_defaults=True):
    """One event; `ts` and `dur` are microseconds, as the format requires, with ps resolution."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: float | None = None
    dur: float | None = None
    cat: str = ""
    id: int | None = None
    bp: str = ""
    args: dict[str, str | int] = field(default_factory=dict[str, str | int])


class Trace(Struct, frozen=True):
    """The file."""

    traceEvents: tuple[TraceEvent, ...]  # noqa: N815 - the names of the format
    displayTimeUnit: str = "ns"  # noqa: N815


def encode_trace(log: Sequence[LoggedOp]) -> bytes:
    """The op log, in its order, as the JSON text of a trace."""
    return msgspec.json.encode(Trace(tuple(trace_events(log))))


def trace_events(log: Sequence[LoggedOp]) -> Iterator[TraceEvent]:
    """Names of processes and threads first, then every operation with its arrow."""
    lanes = _lanes(log)
    # Perfetto reads a pid or tid of 0 as the idle task, and expects thread ids that are unique in
    # the whole trace.
    tids = {lane: tid for tid, lane in enumerate(sorted(set(lanes)), start=1)}
    yield from _process_names(op.sip for op in log)
    for lane, tid in tids.items():
        yield from _thread_name(lane, tid)
    flows: dict[tuple[int, int, int], int] = {}
    for op, lane in zip(log, lanes, strict=True):
        yield _slice(op, tids[lane])
        if op.record.flow is not None:
            yield _arrow(
                op.record, op.sip + 1, tids[lane], flows.setdefault(op.record.flow, len(flows) + 1)
            )


def _lanes(log: Sequence[LoggedOp]) -> list[_Lane]:
    """The lane of every operation: the first lane of its component that is free at its start."""
    ends_of_track: defaultdict[tuple[int, int, int, str], list[int]] = defaultdict(list)
    lanes: list[_Lane] = []
    for op in log:
        record = op.record
        track = (op.sip, record.cube, record.pe, record.engine)
        ends = ends_of_track[track]
        lane = next((index for index, end in enumerate(ends) if end <= record.start_ps), len(ends))
        # Replaces the end of a lane that is free, or appends a new lane.
        ends[lane : lane + 1] = [record.end_ps]
        lanes.append((*track, lane))
    return lanes


def _process_names(sips: Iterable[int]) -> Iterator[TraceEvent]:
    for sip in sorted(set(sips)):
        yield TraceEvent("process_name", "M", sip + 1, 0, args={"name": f"SIP {sip}"})
        yield TraceEvent("process_sort_index", "M", sip + 1, 0, args={"sort_index": sip})


def _thread_name(lane: _Lane, tid: int) -> Iterator[TraceEvent]:
    sip, cube, pe, engine, number = lane
    track = OpRecord(engine, "", 0, 0, cube, pe).track
    name = f"{track} #{number + 1}" if number else track
    yield TraceEvent("thread_name", "M", sip + 1, tid, args={"name": name})
    yield TraceEvent("thread_sort_index", "M", sip + 1, tid, args={"sort_index": tid})


def _slice(op: LoggedOp, tid: int) -> TraceEvent:
    record = op.record
    # Division by a constant: equal picoseconds give equal microseconds in every run.
    start_us, duration_us = (
        record.start_ps / PS_PER_US,
        (record.end_ps - record.start_ps) / PS_PER_US,
    )
    return TraceEvent(
        name=record.name,
        ph="X",
        pid=op.sip + 1,
        tid=tid,
        ts=start_us,
        dur=duration_us,
        cat=record.engine,
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


def _block(dtype: str, shape: tuple[int, ...], strides: tuple[int, ...]) -> str:
    return f"{dtype}{list(shape)}" + (f" strides {list(strides)}" if strides else "")


def _arrow(record: OpRecord, pid: int, tid: int, flow_id: int) -> TraceEvent:
    time_us = record.start_ps / PS_PER_US
    if record.flow_end:
        return TraceEvent("transfer", "f", pid, tid, time_us, cat="flow", id=flow_id, bp="e")
    return TraceEvent("transfer", "s", pid, tid, time_us, cat="flow", id=flow_id)
