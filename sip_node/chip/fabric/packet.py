"""What moves through the fabric: a packet of a message, from one node of a SIP to a node of the same or another SIP."""

from enum import IntEnum

from msgspec import Struct

from runtime.core import dtypes
from runtime.wire.messages import Message
from sip_node.chip.strided_block import BYTES, StridedBlock

ELEMENTS = (BYTES, *(dtype.name for dtype in dtypes.ALL))
"""The element types that the metadata of a slot can name; a packet carries the index."""


class Kind(IntEnum):
    """What a packet asks of the component it reaches."""

    WRITE = 1
    """Store the payload at `address`; the last packet of a message is acknowledged with ACK."""
    READ = 2
    """Send `size` bytes at `address` back with DATA."""
    ACK = 3
    DATA = 4
    """The bytes that a READ asked for."""
    IPCQ_DATA = 5
    """Store the payload in a slot of a receive ring; with the last packet the slot is full."""
    IPCQ_ARRIVAL = 6
    """From a memory to the PE whose receive ring has a full slot in it."""
    IPCQ_CREDIT = 7
    """The slot at `address` of a receive ring is free again."""
    CONTROL = 8
    """`body` is an object for a CPU; such packets stay inside a SIP."""


class Packet(Struct):
    """One packet. `size` bytes are what it occupies of a link; `sent_ps` is when its message left the sender.

    `tag` belongs to the sender: an answer carries it back. `total` is the size of the whole message, `last` its last packet.
    A message about a block of `rows` gives the address of its first row in every packet, and in `begin` the place of the
    packet's first byte among the packed ones. `element` is the type of the elements, an index of `ELEMENTS`, and `call` the
    collective call that a slot belongs to; both are the slot's metadata.
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
    """For a packet to another SIP: the earliest time at the entrance of the link, as its send_bounds was told."""


_NO_FLOW = (-1, -1, -1)
_NO_ROWS = (0, 0)


def to_message(
    packet: Packet, source: int, target: int, seq: int, head_ps: int, tail_ps: int
) -> Message:
    """The packet as it crosses from SIP `source` to its neighbour `target`, where its head arrives at `head_ps`."""
    assert packet.body is None, "objects stay inside a SIP"
    flow = packet.flow or _NO_FLOW
    rows = packet.rows or _NO_ROWS
    body = (
        packet.kind,
        packet.source_sip,
        packet.source_node,
        packet.sip,
        packet.node,
        packet.size,
        packet.address,
        packet.tag,
        packet.total,
        int(packet.last),
        packet.sent_ps,
        tail_ps - head_ps,
        *flow,
        *rows,
        packet.begin,
        packet.element,
    )
    return Message(head_ps, source, target, seq, body, packet.payload, packet.call)


def bound_for(message: Message) -> int:
    """The SIP that the packet in a message is for; the message itself goes to the next SIP on the way."""
    return message.body[3]


def from_message(message: Message) -> tuple[Packet, int]:
    """The packet that a message from a neighbour carries, and the time of its tail."""
    (
        kind,
        source_sip,
        source_node,
        sip,
        node,
        size,
        address,
        tag,
        total,
        last,
        sent_ps,
        tail_ps,
        *flow,
        row_bytes,
        pitch,
        begin,
        element,
    ) = message.body
    packet = Packet(
        Kind(kind),
        source_sip,
        source_node,
        sip,
        node,
        size,
        address,
        tag,
        total,
        bool(last),
        sent_ps,
        message.payload,
        begin=begin,
        element=element,
        call=message.text,
    )
    if flow[0] >= 0:
        packet.flow = (flow[0], flow[1], flow[2])
    if row_bytes:
        packet.rows = StridedBlock(row_bytes, pitch)
    return packet, message.time_ps + tail_ps
