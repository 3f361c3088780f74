"""Describes blocked PEs and queues at the end of a run, as named values for `run.json`."""

from collections.abc import Sequence

from msgspec import Struct

from runtime.core.simtime import ns_from_ps
from runtime.wire.reports import BlockedPe, QueuePointers, RingAddress, SipReport

CoordinateTuple = tuple[int, int, int]
"""(sip, cube, pe)."""


class BlockedPeSummary(Struct, frozen=True):
    """A kernel that waits.

    A receive from any direction has no `peer`. `call` is the signature of the collective call that
    the kernel is part of, empty for other kernels.
    """

    coordinates: CoordinateTuple
    kernel: str
    line: str
    operation: str
    direction: str
    peer: CoordinateTuple | None
    since_ns: float
    call: str


class RingSummary(Struct, frozen=True):
    """A ring: its physical address, and the memory and offset that it decodes to.

    `pe` is -1 for SRAM.
    """

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
    """The blocked PEs, the lines of the wait-for graph, and the queues that are not at rest.

    All are empty after a run in which every rank has finished and every slot was received.
    """

    blocked: tuple[BlockedPeSummary, ...]
    wait_for_graph: tuple[str, ...]
    queues: tuple[QueueSummary, ...]


def waits_of(sips: Sequence[SipReport], lines: tuple[str, ...]) -> Waits:
    """The blocked PEs and queues of the reports, with the wait-for `lines` of the error."""
    return Waits(
        tuple(_blocked(pe) for report in sips for pe in report.blocked),
        lines,
        tuple(_queue(queue) for report in sips for queue in report.queues),
    )


def _blocked(pe: BlockedPe) -> BlockedPeSummary:
    return BlockedPeSummary(
        # Readers of `run.json` find a name beside every value; on the wire these structs are
        # arrays.
        coordinates=(pe.sip, pe.cube, pe.pe),
        kernel=pe.kernel,
        line=pe.line,
        operation=pe.operation,
        direction=pe.direction,
        peer=pe.peer,
        since_ns=ns_from_ps(pe.since_ps),
        call=pe.call,
    )


def _queue(queue: QueuePointers) -> QueueSummary:
    return QueueSummary(
        coordinates=(queue.sip, queue.cube, queue.pe),
        table=queue.table,
        direction=queue.direction,
        peer=queue.peer,
        n_slots=queue.n_slots,
        slot_size=queue.slot_size,
        head=queue.head,
        peer_tail=queue.peer_tail,
        credits=queue.credits,
        tx=_ring(queue.tx),
        peer_head=queue.peer_head,
        tail=queue.tail,
        rx=_ring(queue.rx),
    )


def _ring(ring: RingAddress | None) -> RingSummary | None:
    if ring is None:
        return None
    return RingSummary(
        # Hexadecimal, as in the error text: the fields of an address are groups of bits.
        address=f"{ring.address:#x}",
        resource=ring.resource,
        sip=ring.sip,
        cube=ring.cube,
        pe=ring.pe,
        offset=ring.offset,
    )
