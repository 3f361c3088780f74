"""The text of the operations of a run: a line of the op log and a slice of the trace for each."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from coordinator.report.trace_event import PS_PER_US, TraceEvent
from coordinator.watch.op_logs import Lane, LoggedOp, OpLogs, Span, Track
from runtime.core.trace import Operand, OpRecord

_encode = msgspec.json.Encoder().encode


class _NamedOperand(Struct, frozen=True, gc=False):
    """An `Operand` with a name beside every value."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]


class _OpLine(Struct, frozen=True, gc=False):
    """A line of the op log: records are arrays on the wire, a log for people and filters has a name
    beside every value.
    """

    sip: int
    index: int
    engine: str
    name: str
    start_ps: int
    end_ps: int
    cube: int
    pe: int
    address: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: str
    flow: tuple[int, int, int] | None
    flow_end: bool
    inputs: tuple[_NamedOperand | float, ...]
    strides: tuple[int, ...]
    axis: int | None
    checksum: int


class LogText:
    """The text of the operations of `logs`.

    Slices of one thread of a trace must nest; operations that overlap on one component therefore
    get several `lanes`, each a thread: the component, and the number of the lane there.
    """

    def __init__(self, logs: OpLogs) -> None:
        self._logs = logs
        self._lane_of_op = array("I")
        self.lanes = self._assign_lanes(logs.spans())
        self._flows: dict[tuple[int, int, int], int] = {}

    def pieces(self, tid_of_lane: Sequence[int]) -> Iterator[tuple[bytes, bytes]]:
        """Lines of the op log, and the events of the trace of the same operations, each after a
        comma, in the total order of the log. `tid_of_lane` are the ids of the threads of `lanes`.
        """
        for lane, op in zip(self._lane_of_op, self._logs.merged(), strict=True):
            flow = 0
            if op.record.flow is not None:
                flow = self._flows.setdefault(op.record.flow, len(self._flows) + 1)
            yield _line(op), b"," + _encode(_slice(op, tid_of_lane[lane], flow))

    def _assign_lanes(self, spans: Iterable[Span]) -> list[Lane]:
        """All lanes; of every operation the first of its component that is free at its start."""
        lanes_of_track: defaultdict[Track, list[tuple[int, int]]] = defaultdict(list)
        lanes: list[Lane] = []
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


def _line(op: LoggedOp) -> bytes:
    record = op.record
    inputs = tuple(
        [
            _NamedOperand(each.address, each.shape, each.dtype, each.strides)
            if isinstance(each, Operand)
            else each
            for each in record.inputs
        ]
    )
    return (
        _encode(
            _OpLine(
                sip=op.sip,
                index=op.index,
                engine=record.engine,
                name=record.name,
                start_ps=record.start_ps,
                end_ps=record.end_ps,
                cube=record.cube,
                pe=record.pe,
                address=record.address,
                nbytes=record.nbytes,
                shape=record.shape,
                dtype=record.dtype,
                flow=record.flow,
                flow_end=record.flow_end,
                inputs=inputs,
                strides=record.strides,
                axis=record.axis,
                checksum=record.checksum,
            )
        )
        + b"\n"
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
