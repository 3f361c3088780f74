"""Promises by remaining hops: the earliest output time (EOT) of every channel that leaves an LP.

The *remaining hops* of a message on a channel are the further channels which it crosses after this
one. Routes are fixed, so the number is known for every message. A channel c has one promise for
each number n: no later message with n or more remaining hops arrives before it. The promise for
n = 0 holds for all messages, and promises do not decrease with n. No event is executed before time
0, so a fresh channel has a promise of one lookahead although no frame has been sent.

    EOT(c, n) = lookahead(c) + min( own(c, n),
                                    min over p in paths(c, n) of EIT(p.source, n + 1) + p.delay )

- own(c, n): no event of this LP hands a message with n or more remaining hops to c before this
  time, messages apart which have not arrived yet and are only forwarded.
- paths(c, n): the forwarding paths from in-channels to c of messages which have n or more
  remaining hops on c. Such a message has at least n + 1 remaining hops on the channel on which it
  arrives, so it arrives no earlier than the promise for n + 1 which was received there.

So a promise for n depends on promises for n + 1 only, and the promise for the longest routes
depends on the LP's own events: there is no cycle, and promises do not creep around a ring.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, NoReturn

from runtime.core.errors import CausalityError, ConfigError, ProtocolError
from runtime.core.simtime import NEVER_PS, format_ps
from runtime.wire.frames import Frame, Message
from sip_node.kernel.exact import later_ps


def _promise_of(promises_ps: Sequence[int], remaining_hops: int) -> int:
    # The last promise holds for all greater numbers: promises do not decrease with the hops.
    return promises_ps[min(remaining_hops, len(promises_ps) - 1)]


class _Channel:
    """The common part of both ends of a channel: name, lookahead, and the last promises.

    A channel is a FIFO of timestamped messages from one LP to another. Its *lookahead* is the least
    time between the event that sends a message and the arrival of the message; it is positive.
    """

    __slots__ = ("_promises_ps", "lookahead_ps", "name")

    def __init__(self, source: int, target: int, lookahead_ps: int) -> None:
        self.name = f"channel LP {source} -> LP {target}"
        if lookahead_ps <= 0:
            # Without lookahead, two LPs that wait for each other never raise their promises.
            raise ConfigError(
                self.name,
                "",
                f"lookahead of {lookahead_ps} ps: conservative synchronisation needs more than 0",
            )
        self.lookahead_ps = lookahead_ps
        self._promises_ps: tuple[int, ...] = (lookahead_ps,)

    def promise_of(self, remaining_hops: int) -> int:
        """The best promise that holds for messages with this number of remaining hops."""
        return _promise_of(self._promises_ps, remaining_hops)


class InChannel(_Channel):
    """The receiving end.

    `eit_ps` (earliest input time) is the greater of the last promise for all messages and what
    the last grant implies: no message that is still to come is earlier.
    """

    __slots__ = ("_peer", "eit_ps", "received")

    def __init__(self, peer: int, lp: int, lookahead_ps: int) -> None:
        super().__init__(peer, lp, lookahead_ps)
        self._peer = peer
        self.eit_ps = lookahead_ps
        self.received = 0

    def eit_of(self, remaining_hops: int) -> int:
        """The EIT of messages with at least this number of remaining hops."""
        return max(self.eit_ps, self.promise_of(remaining_hops))

    def receive(self, frame: Frame, now_ps: int) -> bool:
        """Account for `frame`; returns whether a promise for forwarded messages has changed.

        Every event before `now_ps` has been executed. Raises `CausalityError` for a message that
        comes too late, and `ProtocolError` for a promise that decreases.
        """
        # Messages are checked first: the promises of a frame hold for later frames, not for it.
        least_ps = max(self.eit_ps, now_ps)
        for message in frame.messages:
            if message.time_ps < least_ps:
                self._refuse(message, now_ps)
        for remaining_hops in range(max(len(self._promises_ps), len(frame.promises_ps))):
            before_ps = self.promise_of(remaining_hops)
            promise_ps = _promise_of(frame.promises_ps, remaining_hops)
            if promise_ps < before_ps:
                raise ProtocolError(
                    f"LP {self._peer}",
                    f"on {self.name} a promise of {format_ps(promise_ps)} after a promise of "
                    f"{format_ps(before_ps)}: a promise never decreases",
                )
        # A better promise for n > 0 is worth forwarding even if the safe time stays.
        changed = frame.promises_ps[1:] != self._promises_ps[1:]
        self._promises_ps = frame.promises_ps
        self.eit_ps = max(self.eit_ps, frame.promise_ps)
        # The collector compares these counts for each pair of LPs.
        self.received += len(frame.messages)
        return changed

    def grant(self, lbts_ps: int) -> None:
        """No LP executes an event before `lbts_ps` any more.

        So every later message is sent at LBTS or later, and arrives a lookahead after that.
        """
        self.eit_ps = max(self.eit_ps, later_ps(lbts_ps, self.lookahead_ps))

    def _refuse(self, message: Message, now_ps: int) -> NoReturn:
        # The sender checks the same rule, so only a defect gets here.
        if message.time_ps < self.eit_ps:
            rule = "no message comes before what was promised or granted on its channel"
            raise CausalityError(self.name, message.time_ps, self.eit_ps, rule)
        rule = "no message comes before the time up to which its target has executed"
        raise CausalityError(self.name, message.time_ps, now_ps, rule)


class OutChannel(_Channel):
    """The sending end. The last promises made bind every message posted after them."""

    __slots__ = ("_pending", "sent")

    def __init__(self, lp: int, peer: int, lookahead_ps: int) -> None:
        super().__init__(lp, peer, lookahead_ps)
        self.sent = 0
        self._pending: list[Message] = []

    @property
    def has_pending(self) -> bool:
        """Whether messages wait for the next frame."""
        return bool(self._pending)

    def post(self, message: Message, remaining_hops: int = 0) -> None:
        """Keep `message` for the next frame.

        Raises `CausalityError` if it comes before the promise for its number of remaining hops.
        """
        # The promise for its own hops binds a message; those for nearer targets may be earlier.
        promise_ps = self.promise_of(remaining_hops)
        if message.time_ps < promise_ps:
            rule = "no message is sent before the promise made on its channel"
            raise CausalityError(self.name, message.time_ps, promise_ps, rule)
        self._pending.append(message)

    def exceeds_promises(self, eots_ps: Sequence[int]) -> bool:
        """Whether any of the EOTs, by remaining hops, is more than what has been promised."""
        return any(eot_ps > self.promise_of(n) for n, eot_ps in enumerate(eots_ps))

    def frame(self, eots_ps: tuple[int, ...], null_hops: int) -> Frame:
        """A frame with every pending message, and `eots_ps` as promises."""
        # They bind the messages of later frames; those pending were checked when they were posted.
        self._promises_ps = eots_ps
        frame = Frame(eots_ps, null_hops, tuple(self._pending))
        self.sent += len(self._pending)
        self._pending.clear()
        return frame


class SendBound(NamedTuple):
    """No event hands a message with `remaining_hops` to the channel to `peer` before `time_ps`."""

    peer: int
    remaining_hops: int
    time_ps: int


class ForwardingPath(NamedTuple):
    """A path of messages through an LP: they come from LP `source` and leave `delay_ps` later."""

    source: int
    delay_ps: int


ForwardingPaths = Mapping[int, Sequence[Sequence[ForwardingPath]]]
"""Peer LP -> for n = 0, 1, ...: paths(channel to the peer, n)."""


class EarliestOutput:
    """EOT(c, n) for all out-channels of an LP, by the formula above."""

    def __init__(
        self,
        in_channels: Mapping[int, InChannel],
        out_channels: Mapping[int, OutChannel],
        paths: ForwardingPaths,
    ) -> None:
        self._in = in_channels
        self._out = out_channels
        # A channel without forwarded messages has one promise, for n = 0, and no path to it.
        self._paths = {peer: paths.get(peer, ((),)) for peer in out_channels}

    def times_ps(self, own: Iterable[SendBound]) -> dict[int, tuple[int, ...]]:
        """Peer LP -> EOT for n = 0, 1, ..., from the bounds of this LP's own events.

        EOT is never before the promise made, since that stays true. A channel without a bound of
        its own carries only forwarded messages.
        """
        # NEVER_PS: without a bound the LP itself sends no message with this number.
        own_ps = {peer: [NEVER_PS] * len(paths) for peer, paths in self._paths.items()}
        for peer, remaining_hops, time_ps in own:
            bounds_ps = own_ps[peer]
            bounds_ps[remaining_hops] = min(bounds_ps[remaining_hops], time_ps)
        return {peer: self._of_channel(peer, bounds_ps) for peer, bounds_ps in own_ps.items()}

    def forwarded_ps(self) -> int:
        """No message that is only forwarded, and has not arrived, is handed on before this time."""
        return min(
            (
                later_ps(self._in[source].eit_of(1), delay_ps)
                for paths in self._paths.values()
                for source, delay_ps in paths[0]
            ),
            default=NEVER_PS,
        )

    def _of_channel(self, peer: int, own_ps: Sequence[int]) -> tuple[int, ...]:
        channel, paths = self._out[peer], self._paths[peer]
        if len(paths) == 1 and not paths[0]:
            # Nothing is forwarded to this channel: most often so, and this is the cost of a round.
            eot_ps = later_ps(own_ps[0], channel.lookahead_ps)
            return (max(channel.promise_of(0), eot_ps),)
        eots_ps: list[int] = []
        send_ps = NEVER_PS
        for n in reversed(range(len(own_ps))):
            # "n or more": a bound for more remaining hops bounds this promise, too.
            send_ps = min(send_ps, own_ps[n])
            for source, delay_ps in paths[n]:
                send_ps = min(send_ps, later_ps(self._in[source].eit_of(n + 1), delay_ps))
            # Never less than before: bounds of components may fall, but what was promised stays
            # true.
            eots_ps.append(max(channel.promise_of(n), later_ps(send_ps, channel.lookahead_ps)))
        return tuple(reversed(eots_ps))
