"""The messages between LPs: frames, silence reports, grants.

`Message` and `Frame` are the decoded form, with the payload of each message beside it.
`FrameHeader` and `MessageHeader` are the encoded form: the payloads of a frame travel as one raw
part after its header.
"""

from msgspec import Struct

from runtime.wire.fields import Count, EntityNumber, Flat, Hops, LpNumber, Nbytes, TimePs, Wire
from runtime.wire.packets import PacketRun


class Message(Struct, frozen=True, gc=False):
    """One timestamped message on a channel.

    `(time_ps, source, seq)` is the total order of everything that reaches `target`: `source` and
    `target` are the entities (SIPs) at the ends of the channel. `seq` counts what goes from one to
    the other: messages, or the packets in them, of which `time_ps` and `seq` are those of the
    first. `body` is for the model: synchronisation does not read it. `payload` are the modelled
    bytes of the transfer that ends with this message.
    """

    time_ps: int
    source: int
    target: int
    seq: int
    # A type of the wire, so that it is decoded and checked there; PHOLD sends none.
    body: PacketRun | None = None
    payload: bytes | memoryview = b""


class Frame(Struct, frozen=True):
    """What one LP sends to another in one round: messages in sending order, and promises.

    `promises_ps[n]` is a promise for messages that cross n or more further channels after this one:
    no later frame has such a message before it. There is at least one, and none is less than its
    predecessor, so the first holds for all messages. `null_hops` counts the LPs which a promise has
    crossed since an LP that executed an event; it is the time-to-live that stops promises from
    creeping through idle gaps.
    """

    promises_ps: tuple[int, ...]
    null_hops: int
    messages: tuple[Message, ...] = ()

    @property
    def promise_ps(self) -> int:
        """The promise for all messages."""
        return self.promises_ps[0]


class SilenceReport(Wire, frozen=True):
    """An LP with nothing to execute: its next event, and its messages to and from each LP."""

    next_ps: TimePs
    sent: tuple[Count, ...]
    received: tuple[Count, ...]


class Grant(Wire, frozen=True):
    """The lower bound on time stamp (LBTS): no LP will execute an event before `lbts_ps`."""

    lbts_ps: TimePs


class MessageHeader(Flat, frozen=True):
    """A `Message` on the wire: the next `payload_bytes` bytes of the raw part are its payload."""

    time_ps: TimePs
    source: EntityNumber
    target: EntityNumber
    seq: Count
    body: PacketRun | None
    payload_bytes: Nbytes


class FrameHeader(Wire, frozen=True):
    """A `Frame` on the wire."""

    promises_ps: tuple[TimePs, ...]
    null_hops: Hops
    messages: tuple[MessageHeader, ...]


class Envelope(Flat, frozen=True):
    """The first part of everything between LPs: the run, the sending LP, and the content."""

    run_id: str
    lp: LpNumber
    content: FrameHeader | SilenceReport | Grant


PeerContent = Frame | SilenceReport | Grant
