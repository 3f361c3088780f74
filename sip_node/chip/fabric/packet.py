"""Transfers and their packets: what components exchange, and what moves through the fabric.

A transfer is a message from a node to a node of this or another SIP: a request, an answer, or the
data of either. Components send and receive transfers. Links carry packets: a transfer is divided
into one packet or several, which share its header and its payload.

    transfer   |............. total ..............|      payload: all of its bytes
    packets    |== size ==|== size ==|== size ==|=|
               begin 0    begin 1 x size          last
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol

from runtime.core import dtypes
from runtime.core.run_tables import NONE
from runtime.wire.packets import PacketKind
from sip_node.chip.mapping.strided_block import BYTES, StridedBlock
from sip_node.chip.records.packet_train import PacketTrain, QueueTimes

_NO_STEP = NONE
ELEMENTS = (BYTES, *(dtype.name for dtype in dtypes.ALL))
"""The element types that the metadata of a slot names; a transfer carries the index.

uint8 and bytes of no particular type have one name, and so the index 0.
"""


class Kind(IntEnum):
    """The purpose of a transfer, by which the component that it reaches acts."""

    WRITE = PacketKind.WRITE
    """Store the payload at `address`; when all of it is written, acknowledge with ACK."""
    READ = PacketKind.READ
    """Send `total` bytes at `address` back with DATA."""
    ACK = PacketKind.ACK
    DATA = PacketKind.DATA
    """The bytes that a READ requested."""
    IPCQ_DATA = PacketKind.IPCQ_DATA
    """Store the payload in a slot of a receive ring; when all of it is written, the slot is full.
    """
    IPCQ_ARRIVAL = 6
    """A slot of a receive ring is full: from the memory of the ring to its PE."""
    IPCQ_CREDIT = PacketKind.IPCQ_CREDIT
    """The slot at `address` of a receive ring is free again."""
    CONTROL = 8
    """`body` is an object for a CPU; such transfers stay inside a SIP."""
    IPCQ_READY = PacketKind.IPCQ_READY
    """The receive of the message that `call` names is posted."""
    LINK_CREDIT = PacketKind.LINK_CREDIT
    """`size` bytes of the ingress buffer of network `tag` at the neighbouring SIP are free again.
    """
    ATOMIC = 11
    """Combine the payload with the block at `address`, as `body` does; such transfers stay inside a
    SIP.
    """
    OLD = 12
    """The elements that a block had before an ATOMIC."""


# A request causes a reply and a reply causes nothing, so replies always drain; requests drain as
# their replies do. One network for both would close a cycle of waits at each memory.
REQUESTS = frozenset({Kind.READ, Kind.WRITE, Kind.IPCQ_DATA, Kind.CONTROL, Kind.ATOMIC})
"""The kinds of one message class, with virtual networks of its own; all others are replies.

Memories answer requests with replies, and what receives replies accepts them at any time. So the
replies never wait for the requests.
"""


class AtomicUpdate:
    """The `body` of an ATOMIC: the number of its operands, each as large as the block; whether the
    answer has the old elements; and `combine(old, payload)`, which returns the new ones. That is
    called once, when they are written.
    """

    def __init__(
        self,
        operands: int,
        combine: Callable[[bytes, bytes | memoryview], bytes],
        *,
        returns_old: bool,
    ) -> None:
        self.operands, self.combine, self.returns_old = operands, combine, returns_old


class FabricTransfer:
    """A message of `total` bytes from a node to a node: what its packets have in common.

    `address` is its first byte in the memory of the receiver, or that of its first row; `rows` is
    None for bytes without gaps. `sent_ps` is its start. `tag` belongs to the sender: an answer
    carries it back. `payload` are all bytes in packed order, empty in a run without data; those of
    DATA are there when its last packet leaves the memory. `element` is the type of the elements, an
    index of `ELEMENTS`, and `call` the collective call that a slot belongs to: both are the
    metadata of a slot. In a run with records, `train` are its packets in the SIP that sends it, and
    `step` that of the call there which issued it, if there is one.
    """

    def __init__(
        self,
        kind: Kind,
        source_sip: int,
        source_node: int,
        sip: int,
        node: int,
        address: int = 0,
        tag: int = 0,
        total: int = 0,
        sent_ps: int = 0,
        payload: bytes | memoryview = b"",
        body: object = None,
        flow: tuple[int, int, int] | None = None,
        rows: StridedBlock | None = None,
        element: int = 0,
        call: str = "",
        train: PacketTrain | None = None,
    ) -> None:
        self.kind, self.source_sip, self.source_node = kind, source_sip, source_node
        self.sip, self.node, self.address = sip, node, address
        self.tag, self.total, self.sent_ps = tag, total, sent_ps
        self.payload, self.body, self.flow, self.rows = payload, body, flow, rows
        self.element, self.call, self.train = element, call, train
        self.step = NONE

    def __copy__(self) -> "FabricTransfer":
        other = new_transfer(self.kind, self.source_sip, self.source_node, self.sip, self.node)
        other.address, other.tag, other.total = self.address, self.tag, self.total
        other.sent_ps, other.payload, other.body = self.sent_ps, self.payload, self.body
        other.flow, other.rows, other.train = self.flow, self.rows, self.train
        other.element, other.call, other.step = self.element, self.call, self.step
        return other

    def __repr__(self) -> str:
        return (
            f"FabricTransfer({self.kind!r}, from {self.source_sip}:{self.source_node} to "
            f"{self.sip}:{self.node}, {self.total} bytes at {self.address:#x}, tag {self.tag})"
        )


class Packet:
    """A packet of a transfer. It occupies a link with `size` bytes.

    `begin` is the offset of its first byte among the packed bytes of the transfer, and `last` marks
    the packet that leaves last. A packet of a READ requests the bytes from `begin` on, as many as
    one packet of DATA holds; the last one requests all that are left.

    `entrance_ps` is, for a packet to another SIP, the time noted in `SendBounds` for its entrance
    to the link; `space` the room that it takes at its endpoint until `release`, in a fabric with
    credits; `came_from` the neighbouring SIP that it has come from, None for a packet of this SIP.

    In a run with records, `train` are the packets of its transfer in this SIP. Behind packets of
    other transfers it has queued at links of this SIP for `link_ps`, longest at `longest_link`, for
    `longest_ps`. `approach` is what foresees its crossing to another SIP.
    """

    def __init__(self, transfer: FabricTransfer, begin: int, size: int, last: bool = True) -> None:
        self.transfer, self.begin, self.size, self.last = transfer, begin, size, last
        self.space: object = None
        self.came_from: int | None = None
        self.train: PacketTrain | None = None
        self.approach: LastLink | None = None
        self.entrance_ps = self.link_ps = self.longest_ps = 0
        self.longest_link = ""

    @property
    def address(self) -> int:
        """The address of the first byte at the receiver; of rows, that of the first row."""
        transfer = self.transfer
        return transfer.address + self.begin if transfer.rows is None else transfer.address

    def queued(self, waited_ps: int, link: str) -> None:
        """Note a wait behind packets of other transfers at a link, in a run with records."""
        assert self.train is not None, "a packet with a train: a run with records"
        self.link_ps += waited_ps
        if waited_ps > self.longest_ps:
            self.longest_ps, self.longest_link = waited_ps, link
        self.train.times.at_links(self.link_ps, self.longest_link)

    def enter(self, train: PacketTrain | None) -> None:
        """Begin the times in another SIP, where the packets of the transfer are `train`."""
        self.train, self.link_ps, self.longest_ps = train, 0, 0

    def __copy__(self) -> "Packet":
        other = new_packet(self.transfer, self.begin, self.size, self.last)
        other.entrance_ps, other.space = self.entrance_ps, self.space
        other.came_from = self.came_from
        other.train, other.link_ps = self.train, self.link_ps
        other.longest_ps, other.longest_link = self.longest_ps, self.longest_link
        return other

    def __repr__(self) -> str:
        return f"Packet({self.transfer}, {self.begin}, {self.size}, last={self.last})"


def new_transfer(
    kind: Kind, source_sip: int, source_node: int, sip: int, node: int
) -> FabricTransfer:
    """An empty transfer; in C, without the call of a constructor."""
    transfer = FabricTransfer.__new__(FabricTransfer)
    transfer.kind, transfer.source_sip, transfer.source_node = kind, source_sip, source_node
    transfer.sip, transfer.node = sip, node
    transfer.address = transfer.tag = transfer.total = transfer.sent_ps = transfer.element = 0
    transfer.payload, transfer.call, transfer.step = b"", "", _NO_STEP
    transfer.body = transfer.flow = transfer.rows = transfer.train = None
    return transfer


def new_packet(transfer: FabricTransfer, begin: int, size: int, last: bool) -> Packet:
    """A packet of this SIP; in C, without the call of a constructor."""
    packet = Packet.__new__(Packet)
    packet.transfer, packet.begin, packet.size, packet.last = transfer, begin, size, last
    packet.entrance_ps = packet.link_ps = packet.longest_ps = 0
    packet.space = packet.came_from = packet.train = packet.approach = None
    packet.longest_link = ""
    return packet


def train_of(transfer: FabricTransfer) -> PacketTrain:
    """The packets of a transfer in the SIP that sends it, for an operation of its own."""
    if transfer.train is None:
        transfer.train = PacketTrain(QueueTimes())
    return transfer.train


class PacketSender(Protocol):
    """The entrance of packets to the links: the fabric."""

    def send(self, packet: Packet, origin: int, tail_ps: int) -> None:
        """Send `packet` from node `origin` now; its tail is there at `tail_ps`."""
        ...


class LastLink(Protocol):
    """The last link of packets to other SIPs, which foresees their crossing: see `approach`."""

    def earliest_ps(self, base_ps: int) -> int:
        """The least time at which a packet that has not reserved the link is at the IO NoC."""
        ...

    def reserve(self, packet: Packet, head_ps: int, tail_ps: int) -> None:
        """The packet has reserved the link."""
        ...

    def cross(self, packet: Packet) -> Any:
        """The service of the packet, whose head is at the IO NoC, as it was foreseen."""
        ...


class EndpointLike(Protocol):
    """A component at the end of routes."""

    def accept(self, packet: Packet, tail_ps: int) -> None:
        """Take a packet whose head has arrived and whose tail arrives at `tail_ps`."""
        ...
