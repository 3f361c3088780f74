"""A packet between two SIPs as it crosses a channel: every field has a name, a type and a range."""

from enum import IntEnum
from typing import Annotated

from msgspec import Meta

from runtime.core import dtypes
from runtime.wire.fields import (
    Address,
    Count,
    Flat,
    Nbytes,
    NodeNumber,
    PacketBytes,
    SipNumber,
    Text,
    TimePs,
)

RowBytes = Annotated[int, Meta(ge=1, le=1 << 40, title="RowBytes")]
ElementType = Annotated[int, Meta(ge=0, le=len(dtypes.ALL), title="ElementType")]


class PacketKind(IntEnum):
    """The kinds of packets that cross between SIPs: what each requests from its receiver."""

    WRITE = 1
    READ = 2
    ACK = 3
    DATA = 4
    IPCQ_DATA = 5
    # 6 is the arrival that a memory sends to a PE, inside a SIP.
    IPCQ_CREDIT = 7
    # 8 is a command to a CPU, inside a SIP.
    IPCQ_READY = 9
    LINK_CREDIT = 10


CARRIERS = frozenset({PacketKind.WRITE, PacketKind.DATA, PacketKind.IPCQ_DATA})
"""The kinds of packets that carry a payload, in a run with data."""


class PacketFlow(Flat, frozen=True):
    """The transfer which a packet belongs to: the `number`th from one SIP to another."""

    source_sip: SipNumber
    target_sip: SipNumber
    number: Count


class PacketRows(Flat, frozen=True):
    """A block with gaps: rows of `row_bytes` that start `pitch` bytes apart.

    `plane_rows` of them are a plane, and planes start `plane_pitch` bytes apart; with 0 all rows
    are one plane.
    """

    row_bytes: RowBytes
    pitch: Nbytes
    plane_rows: Count
    plane_pitch: Nbytes


class PacketHeader(Flat, frozen=True, gc=False):
    """A packet without its payload.

    `size` is what it occupies of a link, in bytes, and `total` the size of the whole transfer;
    `last` marks the last packet of it. `tail_ps` is the time between the arrivals of its head and
    its tail. `tag` belongs to the sender, and a reply carries it back. `address` is that of the
    transfer, and `begin` the offset of the packet's first byte in its packed block. The last packet
    carries the payload of the whole transfer. `element` is the element type: 0 for bytes and uint8,
    else 1 + its index in `runtime.core.dtypes.ALL`. `call` names the collective call that the
    transfer is a part of; of an IPCQ_READY it names the message and describes its receive.
    """

    kind: PacketKind
    source_sip: SipNumber
    source_node: NodeNumber
    sip: SipNumber
    node: NodeNumber
    size: PacketBytes
    address: Address
    tag: Count
    total: Nbytes
    last: bool
    sent_ps: TimePs
    tail_ps: TimePs
    flow: PacketFlow | None
    rows: PacketRows | None
    begin: Nbytes
    element: ElementType
    call: Text
