"""Who waited and how the queues stood at the end of a run, as `run.json` tells it: with a name beside every value."""

from collections.abc import Sequence

from msgspec import Struct

from runtime.core.simtime import ns_from_ps
from runtime.wire.messages import BlockedPe, QueuePointers, RingAddress, SipReport

CoordinateTuple = tuple[int, int, int]
"""(sip, cube, pe)."""


class BlockedPeSummary(Struct, frozen=True):
    """A kernel that waits. A receive from any direction has no `peer`; `call` is the collective call, if it is part of one."""

    coordinates: CoordinateTuple
    kernel: str
    line: str
    operation: str
    direction: str
    peer: CoordinateTuple | None
    since_ns: float
    call: str


class RingSummary(Struct, frozen=True):
    """A ring: its physical address, and the memory and the offset in it that this names. `pe` is -1 for SRAM."""

    address: str
    resource: str
    sip: int
    cube: int
    pe: int
    offset: int


class QueueSummary(Struct, frozen=True):
    """The pointers of a queue pair, as in `QueuePointers`."""

    coordinates: CoordinateTuple
    table: str
    direction: str
    peer: CoordinateTuple
    n_slots: int
    slot_size: int
    head: int
    peer_tail: int
    credits: int
    tx: RingSummary | None
    peer_head: int
    tail: int
    rx: RingSummary | None


class Waits(Struct, frozen=True):
    """All PEs that waited, the cycles and chains of who waits for whom, and the queues that were not at rest.

    All are empty at the end of a run in which every rank has finished and every slot was received.
    """

    blocked: tuple[BlockedPeSummary, ...]
    who_waits_for_whom: tuple[str, ...]
    queues: tuple[QueueSummary, ...]


def waits_of(sips: Sequence[SipReport], lines: tuple[str, ...]) -> Waits:
    """What the reports of the SIPs say, and the `lines` of the error that was made of them."""
    return Waits(
        tuple(_blocked(pe) for report in sips for pe in report.blocked),
        lines,
        tuple(_queue(queue) for report in sips for queue in report.queues),
    )


def _blocked(pe: BlockedPe) -> BlockedPeSummary:
    since_ns = ns_from_ps(pe.since_ps)
    return BlockedPeSummary(
        (pe.sip, pe.cube, pe.pe),
        pe.kernel,
        pe.line,
        pe.operation,
        pe.direction,
        pe.peer,
        since_ns,
        pe.call,
    )


def _queue(queue: QueuePointers) -> QueueSummary:
    return QueueSummary(
        (queue.sip, queue.cube, queue.pe),
        queue.table,
        queue.direction,
        queue.peer,
        queue.n_slots,
        queue.slot_size,
        queue.head,
        queue.peer_tail,
        queue.credits,
        _ring(queue.tx),
        queue.peer_head,
        queue.tail,
        _ring(queue.rx),
    )


def _ring(ring: RingAddress | None) -> RingSummary | None:
    if ring is None:
        return None
    return RingSummary(
        f"{ring.address:#x}", ring.resource, ring.sip, ring.cube, ring.pe, ring.offset
    )
