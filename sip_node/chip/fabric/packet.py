"""Packets: the units that move through the fabric, from a node to a node of this or another SIP.

A message (a request, an answer, the data of a transfer) is one packet or several. All packets of a
message carry its header, so that no component keeps state for a message on its way.
"""

from enum import IntEnum

from msgspec import Struct

from runtime.core import dtypes
from runtime.wire.frames import Message
from runtime.wire.packets import PacketFlow, PacketHeader, PacketKind, PacketRows
from sip_node.chip.strided_block import BYTES, StridedBlock

ELEMENTS = (BYTES, *(dtype.name for dtype in dtypes.ALL))
"""The element types that the metadata of a slot names; a packet carries the index. uint8 and bytes
of no particular type have one name, and so the index 0.
"""


class Kind(IntEnum):
    """What the component that a packet reaches does with it."""

    WRITE = PacketKind.WRITE
    """Store the payload at `address`; the last packet of a message is acknowledged with ACK."""
    READ = PacketKind.READ
    """Send `size` bytes at `address` back with DATA."""
    ACK = PacketKind.ACK
    DATA = PacketKind.DATA
    """The bytes that a READ requested."""
    IPCQ_DATA = PacketKind.IPCQ_DATA
    """Store the payload in a slot of a receive ring; with the last packet the slot is full."""
    IPCQ_ARRIVAL = 6
    """A slot of a receive ring is full: from the memory of the ring to its PE."""
    IPCQ_CREDIT = PacketKind.IPCQ_CREDIT
    """The slot at `address` of a receive ring is free again."""
    CONTROL = 8
    """`body` is an object for a CPU; such packets stay inside a SIP."""
    IPCQ_READY = PacketKind.IPCQ_READY
    """The receive of the message that `call` names is posted."""
    LINK_CREDIT = PacketKind.LINK_CREDIT
    """`size` bytes of the ingress buffer of network `tag` at the neighbouring SIP are free again.
    """


REQUESTS = frozenset({Kind.READ, Kind.WRITE, Kind.IPCQ_DATA, Kind.CONTROL})
"""The kinds of one message class, with virtual networks of its own; all others are replies.

Memories answer requests with replies, and what receives replies accepts them at any time. So the
replies never wait for the requests.
"""


class Packet(Struct):
    """One packet. It occupies a link with `size` bytes; `sent_ps` is the start of its message.

    `tag` belongs to the sender: an answer carries it back. `total` is the size of the whole
    message, `last` marks its last packet. A message about a block of `rows` has the address of the
    first row in every packet; `begin` is the offset of the packet's first byte among the packed
    bytes. `element` is the type of the elements, an index of `ELEMENTS`, and `call` the collective
    call that a slot belongs to: both are the metadata of a slot.
    """

    kind: Kind
    source_sip: int
    source_node: int
    sip: int
    node: int
    size: int
    address: int = 0
    tag: int = 0
    total: int = 0
    last: bool = True
    sent_ps: int = 0
    payload: bytes | memoryview = b""
    body: object = None
    flow: tuple[int, int, int] | None = None
    rows: StridedBlock | None = None
    begin: int = 0
    element: int = 0
    call: str = ""
    entrance_ps: int = 0
    """For a packet to another SIP: the time noted in `SendBounds` for its entrance to the link."""
    space: object = None
    """The room that the packet takes at its endpoint until `release`, in a fabric with credits."""
    came_from: int | None = None
    """The neighbouring SIP that it has come from; None for a packet of this SIP."""


def to_message(
    packet: Packet, source: int, target: int, seq: int, head_ps: int, tail_ps: int
) -> Message:
    """The packet in a message from SIP `source` to its neighbour `target`.

    Its head arrives there at `head_ps`, its tail at `tail_ps`.
    """
    assert packet.body is None, "objects stay inside a SIP"
    header = PacketHeader(
        kind=PacketKind(packet.kind),
        source_sip=packet.source_sip,
        source_node=packet.source_node,
        sip=packet.sip,
        node=packet.node,
        size=packet.size,
        address=packet.address,
        tag=packet.tag,
        total=packet.total,
        last=packet.last,
        sent_ps=packet.sent_ps,
        tail_ps=tail_ps - head_ps,
        flow=packet.flow and PacketFlow(*packet.flow),
        rows=packet.rows and PacketRows(*packet.rows),
        begin=packet.begin,
        element=packet.element,
        call=packet.call,
    )
    return Message(
        time_ps=head_ps,
        source=source,
        target=target,
        seq=seq,
        body=header,
        payload=packet.payload,
    )


def header_of(message: Message) -> PacketHeader:
    """The header of the packet in a message between SIPs, each of which carries one."""
    assert message.body is not None, "a message between SIPs carries a packet"
    return message.body


def from_message(message: Message) -> tuple[Packet, int]:
    """The packet that a message from a neighbour carries, and the time of its tail."""
    header = header_of(message)
    flow, rows = header.flow, header.rows
    packet = Packet(
        kind=Kind(header.kind),
        source_sip=header.source_sip,
        source_node=header.source_node,
        sip=header.sip,
        node=header.node,
        size=header.size,
        address=header.address,
        tag=header.tag,
        total=header.total,
        last=header.last,
        sent_ps=header.sent_ps,
        payload=message.payload,
        flow=flow and (flow.source_sip, flow.target_sip, flow.number),
        rows=rows and StridedBlock(rows.row_bytes, rows.pitch, rows.plane_rows, rows.plane_pitch),
        begin=header.begin,
        element=header.element,
        call=header.call,
    )
    return packet, message.time_ps + header.tail_ps
