"""The critical path through operations: their service, their queues, and who requested them."""

from typing import Any

from kernbench.explain.why.cursor import AtOp, AtProgram, BeforeOp, Cursor, WalkContext, component
from kernbench.explain.why.index import SipIndex, place
from kernbench.explain.why.parts import TimePart, part_of_engine
from kernbench.explain.why.piece import PieceKind
from kernbench.explain.why.slots import OpOfSip
from runtime.core.run_tables import NONE, Cause

_KIND = {
    TimePart.COMPUTE: PieceKind.COMPUTE,
    TimePart.MEMORY: PieceKind.MEMORY,
    TimePart.COMMUNICATION: PieceKind.COMMUNICATION,
    TimePart.LAUNCH: PieceKind.LAUNCH,
}
Span = tuple[int, int]
"""Begin and end, in picoseconds."""
SEND, RECEIVE, ARRIVAL = "ipcq_send", "ipcq_recv", "arrival"


def at_operation(walk: WalkContext, cursor: AtOp) -> Cursor:
    """The service of an operation; an arrival is that of a slot since its send."""
    index, row = walk.indices[cursor.op.sip], cursor.op.row
    if index.ops.text("name")[row] == ARRIVAL:
        send = walk.slots.send_of_arrival(cursor.op)
        if send is not None:
            return _transfer(walk, send, cursor.op, cursor.time_ps)
    start_ps = min(index.ops["start_ps"].item(row), cursor.time_ps)
    _service(walk, cursor.op, start_ps, cursor.time_ps)
    return BeforeOp(cursor.op, cursor.step, start_ps)


def before_operation(walk: WalkContext, cursor: BeforeOp) -> Cursor | None:
    """The queue of an operation, then its request: by a step, a slot, a credit, another engine."""
    index, row = walk.indices[cursor.op.sip], cursor.op.row
    requested_ps = min(index.ops["requested_ps"].item(row), cursor.time_ps)
    if requested_ps < cursor.time_ps:
        # The engine was busy until it took this operation: the path goes on through the operation
        # that had it.
        holder = _holder(index, row, cursor.time_ps) if walk.through_engines else NONE
        if holder != NONE:
            return AtOp(OpOfSip(cursor.op.sip, holder), NONE, cursor.time_ps)
        _queue(walk, cursor.op, requested_ps, cursor.time_ps)
    return _requested(walk, cursor, requested_ps)


def _requested(walk: WalkContext, cursor: BeforeOp, time_ps: int) -> Cursor | None:
    index, row = walk.indices[cursor.op.sip], cursor.op.row
    step = cursor.step
    if step == NONE or not _lasts(index, step, time_ps):
        step = index.requesting_step(row, time_ps)
    if step != NONE and index.steps["issued_ps"].item(step) >= time_ps:
        return AtProgram(cursor.op.sip, index.steps["program"].item(step), time_ps)
    predecessor = _slot_or_credit(walk, cursor.op, step, time_ps) or _previous(index, row, time_ps)
    if predecessor is not None:
        return predecessor
    if step != NONE:
        return AtProgram(cursor.op.sip, index.steps["program"].item(step), time_ps)
    return walk.unexplained(cursor.op.sip, time_ps)


def _slot_or_credit(walk: WalkContext, op: OpOfSip, step: int, time_ps: int) -> Cursor | None:
    """The arrival that a receive waited for since its step was issued, the credit of a send."""
    index = walk.indices[op.sip]
    since_ps = index.steps["issued_ps"].item(step) if step != NONE else 0
    name = index.ops.text("name")[op.row]
    if name == RECEIVE:
        send = walk.slots.send_of_receive(op)
        arrival = send and walk.slots.arrival_of_send(send)
        if send and arrival and since_ps < _end_ps(walk, arrival) <= time_ps:
            return _transfer(walk, send, arrival, time_ps)
    # Sends in the background have no step; most of them follow the send before.
    elif name == SEND and (step != NONE or _previous(index, op.row, time_ps) is None):
        receive = walk.slots.receive_that_freed(op)
        if receive is not None and since_ps < _end_ps(walk, receive) < time_ps:
            freed_ps = _end_ps(walk, receive)
            _credit(walk, op, receive, freed_ps, time_ps)
            return AtOp(receive, NONE, freed_ps)
    return None


def _end_ps(walk: WalkContext, op: OpOfSip) -> int:
    return walk.indices[op.sip].ops["end_ps"].item(op.row)


def _previous(index: SipIndex, row: int, time_ps: int) -> Cursor | None:
    """The operation of the PE whose end is the request: that of the engine before."""
    ops = index.ops
    for other in index.ops_of_pe.at(place(ops["cube"].item(row), ops["pe"].item(row)), time_ps):
        if other != row and ops["start_ps"].item(other) < time_ps:
            return AtOp(OpOfSip(index.sip, other), NONE, time_ps)
    return None


def _holder(index: SipIndex, row: int, time_ps: int) -> int:
    """The operation of the same engine that ended when this one started, -1 for none."""
    ops = index.ops
    engine = ops.text("engine")
    for other in index.ops_of_pe.at(place(ops["cube"].item(row), ops["pe"].item(row)), time_ps):
        if engine.codes[other] == engine.codes[row] and ops["start_ps"].item(other) < time_ps:
            return other
    return NONE


def _lasts(index: SipIndex, step: int, time_ps: int) -> bool:
    return index.steps["begin_ps"].item(step) <= time_ps <= index.steps["end_ps"].item(step)


def _transfer(walk: WalkContext, send: OpOfSip, arrival: OpOfSip, until_ps: int) -> Cursor:
    """A slot on its way, from the start of its send to its arrival at the receiver."""
    ops = walk.indices[send.sip].ops
    start_ps = ops["start_ps"].item(send.row)
    target = walk.indices[arrival.sip].ops
    to = _place(arrival.sip, target, arrival.row)
    what = f"slot {_place(send.sip, ops, send.row)} -> {to}"
    _service(walk, send, start_ps, until_ps, what)
    return BeforeOp(send, NONE, start_ps)


def _credit(
    walk: WalkContext, send: OpOfSip, receive: OpOfSip, freed_ps: int, time_ps: int
) -> None:
    ops, freeing = walk.indices[send.sip].ops, walk.indices[receive.sip].ops
    what = (
        f"credit {_place(receive.sip, freeing, receive.row)} -> {_place(send.sip, ops, send.row)}"
    )
    _add(walk, send, (freed_ps, time_ps), PieceKind.COMMUNICATION, what, cause=Cause.CREDIT)


def _service(
    walk: WalkContext, op: OpOfSip, start_ps: int, end_ps: int, what: str | None = None
) -> None:
    """The service of an operation; first the time that its packets queued at links, memories."""
    ops = walk.indices[op.sip].ops
    name, engine = ops.text("name")[op.row], ops.text("engine")[op.row]
    link_ps, memory_ps = ops["link_ps"].item(op.row), ops["memory_ps"].item(op.row)
    kind = _KIND[part_of_engine(engine, name)]
    # A record has the lengths of the queues and not their times. They are put at the end of the
    # service, links before memories: the sums by kind do not depend on it.
    memory_from = max(start_ps, end_ps - memory_ps)
    link_from = max(start_ps, memory_from - link_ps)
    at_memory = f"{name} at a memory"
    _add(walk, op, (memory_from, end_ps), PieceKind.QUEUE, at_memory, cause=Cause.MEMORY)
    at_link, span = ops.text("link")[op.row] or "link", (link_from, memory_from)
    _add(walk, op, span, PieceKind.QUEUE, name, cause=Cause.LINK, component=at_link)
    _add(walk, op, (start_ps, link_from), kind, what or name)


def _queue(walk: WalkContext, op: OpOfSip, requested_ps: int, start_ps: int) -> None:
    ops = walk.indices[op.sip].ops
    cause = ops.text("cause")[op.row] or Cause.ENGINE
    _add(walk, op, (requested_ps, start_ps), PieceKind.QUEUE, ops.text("name")[op.row], cause=cause)


def _add(
    walk: WalkContext, op: OpOfSip, span: Span, kind: PieceKind, what: str, **rest: str
) -> None:
    begin_ps, end_ps = span
    if end_ps <= begin_ps:
        return
    index = walk.indices[op.sip]
    ops = index.ops
    cube, pe = ops["cube"].item(op.row), ops["pe"].item(op.row)
    step = index.issuing_step(op.row)
    walk.add(
        begin_ps,
        end_ps,
        kind,
        rest.get("component") or component(cube, pe, ops.text("engine")[op.row]),
        what,
        sip=op.sip,
        cube=cube,
        pe=pe,
        cause=rest.get("cause", ""),
        line="" if step == NONE else index.steps.text("line")[step],
        op=op.row,
        step=NONE if step == NONE else index.steps["step"].item(step),
    )


def _place(sip: int, ops: Any, row: int) -> str:
    return f"sip{sip}.cube{ops['cube'].item(row)}.pe{ops['pe'].item(row)}"
