"""Packets between two SIPs as they cross a channel: fields with names, types and ranges.

The unit is the transfer: its header crosses once, and its packets as entries of a few arrays.
"""

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
"""The kinds of transfers that carry a payload, in a run with data."""


class TransferFlow(Flat, frozen=True):
    """The `number`th transfer from one SIP to another, which a trace draws as an arrow."""

    source_sip: SipNumber
    target_sip: SipNumber
    number: Count


class TransferRows(Flat, frozen=True):
    """A block with gaps: rows of `row_bytes` that start `pitch` bytes apart.

    `plane_rows` of them are a plane, and planes start `plane_pitch` bytes apart; with 0 all rows
    are one plane.
    """

    row_bytes: RowBytes
    pitch: Nbytes
    plane_rows: Count
    plane_pitch: Nbytes


class TransferHeader(Flat, frozen=True, gc=False):
    """The fields that all packets of a transfer have in common.

    `total` are the bytes of the block that starts at `address`; one with gaps starts at its first
    row. `tag` belongs to the sender, and a reply carries it back. `element` is the element type: 0
    for bytes and uint8, else 1 + its index in `runtime.core.dtypes.ALL`. `call` names the
    collective call that the transfer is a part of; of an IPCQ_READY it names the message and
    describes its receive.
    """

    kind: PacketKind
    source_sip: SipNumber
    source_node: NodeNumber
    sip: SipNumber
    node: NodeNumber
    address: Address
    tag: Count
    total: Nbytes
    sent_ps: TimePs
    flow: TransferFlow | None
    rows: TransferRows | None
    element: ElementType
    call: Text


MAX_RUN_PACKETS = 1 << 14


class PacketRun(Flat, frozen=True, gc=False):
    """Consecutive packets of one transfer on one link: every array has one entry for each.

    `number` identifies the transfer on its link, from 0; `header` comes with its first run, and
    `ends` marks the run with its last packet. A packet is the `seq`th from its source to its
    target. Its head arrives at `head_ps`, its tail `tail_ps` later; it occupies `size` bytes of a
    link, and `begin` is the offset of its first byte in the block. Heads and seqs ascend.
    """

    number: Count
    header: TransferHeader | None
    ends: bool
    heads_ps: tuple[TimePs, ...]
    tails_ps: tuple[TimePs, ...]
    seqs: tuple[Count, ...]
    begins: tuple[Nbytes, ...]
    sizes: tuple[PacketBytes, ...]
