"""The messages between LPs: frames, silence reports, calls, grants."""

from typing import Annotated

from msgspec import Meta

from runtime.wire.fields import (
    Count,
    EntityNumber,
    Flat,
    Hops,
    LpNumber,
    PositiveCount,
    TimePs,
    Wire,
)

MAX_LPS = 1 << 16


class Message(Flat, frozen=True, gc=False):
    """One timestamped message on a channel.

    `(time_ps, source, seq)` is the total order of everything that reaches `target`: `source` and
    `target` are the entities (SIPs) at the ends of the channel. `seq` counts what goes from one to
    the other: messages, or the packets in them, of which `time_ps` and `seq` are those of the
    first. `body` is for the model, which encodes it: synchronisation does not read it. `payload`
    are the modelled bytes of the transfer that ends with this message.
    """

    time_ps: TimePs
    source: EntityNumber
    target: EntityNumber
    seq: Count
    body: bytes = b""
    payload: bytes = b""


# A decoder checks the length of an array before it reserves memory for it.
Promises = Annotated[tuple[TimePs, ...], Meta(min_length=1, max_length=MAX_LPS, title="Promises")]
Messages = Annotated[tuple[Message, ...], Meta(max_length=1 << 20, title="Messages")]


class Frame(Wire, frozen=True):
    """Content of a channel in one round of its LP: messages in sending order, and promises.

    `promises_ps[n]` is a promise for messages that cross n or more further channels after this one:
    no later frame has such a message before it. There is at least one, and none is less than its
    predecessor, so the first holds for all messages. `null_hops` counts the LPs which a promise has
    crossed since an LP that executed an event; it is the time-to-live that stops promises from
    creeping through idle gaps.
    """

    promises_ps: Promises
    null_hops: Hops
    messages: Messages = ()

    @property
    def promise_ps(self) -> int:
        """The promise for all messages."""
        return self.promises_ps[0]


class PairCount(Flat, frozen=True, gc=False):
    """The number of messages from LP `source` to LP `target`, more than 0."""

    source: LpNumber
    target: LpNumber
    messages: PositiveCount


PairCounts = Annotated[tuple[PairCount, ...], Meta(max_length=1 << 20, title="PairCounts")]


class SilenceReport(Wire, frozen=True):
    """An LP with nothing to execute, or a host whose LPs have nothing to execute.

    `grants` counts the grants that it has received. `next_ps` is its next event; `outside_ps` the
    least EIT of its channels from other hosts, never in the report of a host. `withholds` is
    whether it reports by itself: it withholds a promise, or nothing can happen to it any more; in
    the report of a host it is false.
    `sent` and `received` count the messages between its LPs and others; a pair without a message is
    absent.
    """

    grants: Count
    next_ps: TimePs
    outside_ps: TimePs
    withholds: bool
    sent: PairCounts = ()
    received: PairCounts = ()


class Call(Wire, frozen=True):
    """A request to report when nothing is left to execute, although nothing is withheld."""


class Grant(Wire, frozen=True):
    """The lower bound on time stamp (LBTS) of the run, or of the host of the receiver.

    No LP of the run, or of the host, will execute an event before `lbts_ps`.
    """

    lbts_ps: TimePs
    of_run: bool


Silence = SilenceReport | Call | Grant
PeerContent = Frame | Silence


class Envelope(Flat, frozen=True):
    """Everything between LPs: the sending LP, what it sends, and its number.

    `number` counts what the LP has sent to the receiving one, from 0. `trips` is the number of
    trips between hosts behind the present of the sender (`sip_node/pdes/sync.py`). `sent_ns` is
    the time of sending on the clock of the host in a run with `--delay-us`, else 0.
    """

    lp: LpNumber
    number: Count
    trips: Count
    content: PeerContent
    sent_ns: Count = 0
