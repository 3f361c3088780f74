"""The records in which an LP reports about its SIPs: waits, queues, slots, the end."""

from collections.abc import Iterable

from runtime.core.bench_registry import BenchOutcome
from runtime.core.coordinates import PeCoordinates
from runtime.core.program_ranges import ProgramRange
from runtime.core.simtime import format_ps
from runtime.wire.fields import (
    Address,
    Count,
    CubeNumber,
    Flat,
    MaybePe,
    Nbytes,
    PeNumber,
    PeTuple,
    PrintedText,
    SipNumber,
    TimePs,
)


class RingAddress(Flat, frozen=True):
    """A physical address, decoded: `offset` bytes into a `resource`.

    `pe` is -1 for a resource that the PEs of a cube share.
    """

    address: Address
    resource: str
    sip: SipNumber
    cube: CubeNumber
    pe: MaybePe
    offset: Nbytes

    def __str__(self) -> str:
        owner = f"sip {self.sip} cube {self.cube}" + (f" pe {self.pe}" if self.pe >= 0 else "")
        return f"{self.address:#x} ({self.resource} of {owner} + {self.offset:#x})"


class DevicePrint(Flat, frozen=True):
    """A line that a kernel has printed; `kernel` has its name, with a grid and its program."""

    time_ps: TimePs
    sip: SipNumber
    cube: CubeNumber
    pe: PeNumber
    kernel: str
    text: PrintedText

    def __str__(self) -> str:
        coordinates = PeCoordinates(self.sip, self.cube, self.pe)
        return f"[{format_ps(self.time_ps)}] {coordinates}: {self.kernel}: {self.text}"


def in_order_of_time(prints: Iterable[DevicePrint]) -> list[DevicePrint]:
    """Lines in the order of (time, SIP, cube, PE); those of a PE in the order of its calls."""
    return sorted(prints, key=lambda line: (line.time_ps, line.sip, line.cube, line.pe))


class SlotTransfer(Flat, frozen=True):
    """A slot that a kernel has sent or received.

    `operation` is `send` or `recv`, `time_ps` its end. `slot` counts from 0 in the ring, `at` is
    its address.
    """

    time_ps: TimePs
    sip: SipNumber
    cube: CubeNumber
    pe: PeNumber
    kernel: str
    operation: str
    direction: str
    peer: PeTuple
    nbytes: Nbytes
    dtype: str
    slot: Count
    address: RingAddress

    def __str__(self) -> str:
        arrow = "->" if self.operation == "send" else "<-"
        return (
            f"{format_ps(self.time_ps)}  sip {self.sip} cube {self.cube} pe {self.pe}: "
            f"kernel {self.kernel!r} {self.operation} "
            f"{self.direction} {arrow} {PeCoordinates(*self.peer)}, {self.nbytes} B {self.dtype}, "
            f"slot {self.slot} at {self.address}"
        )


class QueuePointers(Flat, frozen=True):
    """The registers of one queue pair of a PE.

    Slots are numbered from 0 without wrapping; slot n is at n modulo `n_slots`. Of the ring at the
    peer, `tx`: `head` counts the slots sent, `peer_tail` the slots which the peer has returned as
    far as this PE has been informed; `credits` are the slots that are left. Of the PE's own ring,
    `rx`: `peer_head` counts the slots that have arrived, `tail` the slots read and returned. A pair
    that works in one direction has one ring. `table` names the queue table of the pair.
    """

    sip: SipNumber
    cube: CubeNumber
    pe: PeNumber
    table: str
    direction: str
    peer: PeTuple
    n_slots: Count
    slot_size: Nbytes
    head: Count
    peer_tail: Count
    credits: Count
    tx: RingAddress | None
    peer_head: Count
    tail: Count
    rx: RingAddress | None

    @property
    def at_rest(self) -> bool:
        """Whether every credit has returned and every arrival was read."""
        return self.credits == self.n_slots and self.peer_head == self.tail

    def __str__(self) -> str:
        return (
            f"sip {self.sip} cube {self.cube} pe {self.pe} {self.table} {self.direction}: "
            f"sends head {self.head}, peer's tail {self.peer_tail}, "
            f"{self.credits} of {self.n_slots} credits, ring {self.tx}; "
            f"receives peer's head {self.peer_head}, tail {self.tail}, ring {self.rx}"
        )


class BlockedPe(Flat, frozen=True):
    """A kernel that waits for a peer.

    `operation` is `send`, `recv` or `barrier`, whose `direction` names the PEs that are missing and
    whose `peer` is the first of them that runs. A receive from any direction has no `peer`. `line`
    is `file:line` of the user's code. `call` is the collective call that the kernel is a part of,
    if any: a PE may run one of these beside another kernel.
    """

    sip: SipNumber
    cube: CubeNumber
    pe: PeNumber
    kernel: str
    operation: str
    direction: str
    peer: PeTuple | None
    since_ps: TimePs
    line: str = ""
    call: str = ""

    def __str__(self) -> str:
        peer = "any peer" if self.peer is None else PeCoordinates(*self.peer)
        of_peer = "" if self.operation == "barrier" else f" ({peer})"
        line = f" at {self.line}" if self.line else ""
        call = f", in {self.call}" if self.call else ""
        return (
            f"{PeCoordinates(self.sip, self.cube, self.pe)}: kernel {self.kernel!r} "
            f"{self.operation} {self.direction}{of_peer} "
            f"since {format_ps(self.since_ps)}{line}{call}"
        )


class OpenTransfer(Flat, frozen=True):
    """A send or receive of a rank that has not completed.

    `sends` is false for a receive. `call` is the id of the message, equal at both ends, `function`
    the function of `torch.distributed` that was called at `line`. `behind` is empty for a transfer
    that is posted on its PEs; else it is what the transfer waits for in its rank: the `call` of
    another transfer, or a description. `overlaps` is whether it is behind a transfer that uses
    common elements of its tensor. `through` is the command between both, if it is no transfer.
    """

    sip: SipNumber
    peer: SipNumber
    sends: bool
    tag: int
    call: str
    elements: str
    function: str
    line: str
    behind: str
    overlaps: bool = False
    through: str = ""

    def __str__(self) -> str:
        return f"{self.function} {'to' if self.sends else 'from'} rank {self.peer}"


class StalledBuffer(Flat, frozen=True):
    """A buffer of the network whose first packet stands still, and a buffer that it waits for.

    Buffers are named, `packet` describes the packet.
    """

    buffer: str
    packet: str
    waits_for: str


class SipReport(Flat, frozen=True):
    """The end of one SIP: its digest, its time, the result of its rank, its counters.

    `time_ps` is the end of its last operation, or the last answer to a command without one, such as
    an event. `broken_law` is empty, or the law of the model that does not hold at the end; while a
    rank has not finished, that is to be expected. `queues` are the queues of the PEs that wait, and
    of other PEs the queues that are not at rest. `transfers` are the sends and receives that have
    not completed, in the order of the calls; `stalled` are the packets that stand still in full
    buffers, once for each buffer that they wait for. `ranges` are the named ranges of the program
    of its rank.
    """

    sip: SipNumber
    digest: str
    time_ps: TimePs
    finished: bool
    outcome: BenchOutcome | None
    counters: dict[str, int]
    blocked: tuple[BlockedPe, ...]
    waiting_for: str
    broken_law: str = ""
    queues: tuple[QueuePointers, ...] = ()
    transfers: tuple[OpenTransfer, ...] = ()
    stalled: tuple[StalledBuffer, ...] = ()
    ranges: tuple[ProgramRange, ...] = ()
