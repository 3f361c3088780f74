"""The types of the fields of messages, and the bases of the structs.

A type carries the range of its values, and the codec checks the range while it decodes. The title
of a type is its name in `docs/internals/protocol.md`.
"""

from typing import Annotated

from msgspec import Meta, Struct

from runtime.core.simtime import NEVER_PS

PROTOCOL_VERSION = 23
"""The number of the protocol: it grows with every change of a struct or a field."""
CHUNK_BYTES = 4 << 20
"""The most bytes of a memory, or of what a host wrote, in one message."""
CHUNK_TEXTS = 1 << 10
"""The most texts in one message."""
TEXT_LENGTH = 1 << 10
"""The most characters of a text."""
MAX_CONTROL_BYTES = 16 << 20
"""The most bytes of a control message that is sent whole; the sockets take no more at once."""
MAX_JOINED_BYTES = 256 << 20
"""The most bytes of a control message that is sent in pieces."""
LONGEST_TEXT_BYTES = 64 << 10
"""The most bytes of a text in a report of a failure; the rest is cut."""
MAX_FRAME_BYTES = 1 << 30
"""The most bytes of one frame, with the payloads of its messages."""
ADDRESS_BITS = 53
"""Width of a physical address in the largest machine."""

TimePs = Annotated[int, Meta(ge=0, le=NEVER_PS, title="TimePs")]
# Ranges here are those of every run; the decoder of an LP also has the numbers of its run.
LpNumber = Annotated[int, Meta(ge=0, lt=1 << 16, title="LpNumber")]
MaybeLp = Annotated[int, Meta(ge=-1, lt=1 << 16, title="MaybeLp")]
HostNumber = Annotated[int, Meta(ge=0, lt=1 << 16, title="HostNumber")]
SipNumber = Annotated[int, Meta(ge=0, lt=1 << 16, title="SipNumber")]
MaybeRank = Annotated[int, Meta(ge=-1, lt=1 << 16, title="MaybeRank")]
CubeNumber = Annotated[int, Meta(ge=0, lt=1 << 10, title="CubeNumber")]
PeNumber = Annotated[int, Meta(ge=0, lt=1 << 10, title="PeNumber")]
MaybePe = Annotated[int, Meta(ge=-1, lt=1 << 10, title="MaybePe")]
EntityNumber = Annotated[int, Meta(ge=0, lt=1 << 31, title="EntityNumber")]
NodeNumber = Annotated[int, Meta(ge=0, lt=1 << 20, title="NodeNumber")]
# msgspec takes no bound beyond int64, so this is the largest count.
Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1, title="Count")]
PositiveCount = Annotated[int, Meta(ge=1, le=(1 << 63) - 1, title="PositiveCount")]
Hops = Annotated[int, Meta(ge=0, lt=1 << 16, title="Hops")]
PacketBytes = Annotated[int, Meta(ge=1, le=MAX_FRAME_BYTES, title="PacketBytes")]
Nbytes = Annotated[int, Meta(ge=0, lt=1 << 51, title="Nbytes")]
Address = Annotated[int, Meta(ge=0, lt=1 << ADDRESS_BITS, title="Address")]
Seconds = Annotated[float, Meta(ge=0, title="Seconds")]
Microseconds = Annotated[float, Meta(ge=0, title="Microseconds")]
Milliseconds = Annotated[float, Meta(ge=0, title="Milliseconds")]
Chunk = Annotated[bytes, Meta(max_length=CHUNK_BYTES, title="Chunk")]
ExitCode = Annotated[int, Meta(ge=0, lt=1 << 8, title="ExitCode")]
Text = Annotated[str, Meta(max_length=TEXT_LENGTH, title="Text")]
Texts = Annotated[tuple[Text, ...], Meta(max_length=CHUNK_TEXTS, title="Texts")]
Addresses = Annotated[tuple[Text, ...], Meta(max_length=16, title="Addresses")]

PrintedText = Annotated[str, Meta(max_length=1 << 12, title="PrintedText")]

PeTuple = tuple[SipNumber, CubeNumber, PeNumber]
"""The coordinates (sip, cube, pe) of a processing element."""


class Wire(Struct, array_like=True, frozen=True, tag=True, forbid_unknown_fields=True):
    """Base of all messages: a typed array of fixed length, with the name of the struct first."""


class Flat(Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    """Base of the records inside messages: an array of the fields, without a name."""
