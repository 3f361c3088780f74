"""The two ends of a channel: a FIFO of timestamped messages from one LP to another.

Its `lookahead_ps` is the least time between the event that sends a message and the arrival of the message. No event is
executed before time 0, so a fresh channel stands at a promise of one lookahead without a frame having been sent.

Promises are made by *remaining_hops*: the one for n holds for messages with n or more further channels ahead of them. So the one
for 0 holds for all messages, and each is at least the one before.
"""

from collections.abc import Sequence

from runtime.core.errors import CausalityError, ConfigError, ProtocolError
from runtime.core.simtime import NEVER_PS, format_ps
from runtime.wire.messages import Frame, Message


def later_ps(time_ps: int, delay_ps: int) -> int:
    """`time_ps + delay_ps`; never stays never."""
    return min(time_ps + delay_ps, NEVER_PS)


def _channel_name(source: int, target: int, lookahead_ps: int) -> str:
    name = f"channel LP {source} -> LP {target}"
    if lookahead_ps <= 0:
        raise ConfigError(
            name,
            "",
            f"lookahead of {lookahead_ps} ps: conservative synchronisation needs more than 0",
        )
    return name


def _of(promises_ps: tuple[int, ...], remaining_hops: int) -> int:
    """The best promise that holds for messages with so many remaining_hops."""
    return promises_ps[min(remaining_hops, len(promises_ps) - 1)]


class InChannel:
    """The receiving end. `eit_ps` (earliest input time): no message still to come is earlier."""

    __slots__ = ("_promises_ps", "eit_ps", "lookahead_ps", "name", "received")

    def __init__(self, peer: int, lp: int, lookahead_ps: int) -> None:
        self.name = _channel_name(peer, lp, lookahead_ps)
        self.lookahead_ps = lookahead_ps
        self.eit_ps = lookahead_ps
        self.received = 0
        self._promises_ps = (lookahead_ps,)

    def transit_eit_ps(self, remaining_hops: int) -> int:
        """The EIT of messages with at least so many further channels ahead."""
        return max(self.eit_ps, _of(self._promises_ps, remaining_hops))

    def receive(self, frame: Frame, now_ps: int) -> bool:
        """Account for `frame`; whether it has news of messages that are to be sent on. All events before `now_ps` are executed.

        Raises `CausalityError` for a message that comes too late and `ProtocolError` for a promise that decreases.
        """
        for message in frame.messages:
            self._check(message, now_ps)
        promises_ps = (frame.promise_ps, *frame.transit_ps)
        for remaining_hops, promise_ps in enumerate(promises_ps):
            if promise_ps < (before_ps := _of(self._promises_ps, remaining_hops)):
                raise ProtocolError(
                    self.name,
                    f"promise of {format_ps(promise_ps)} after a promise of {format_ps(before_ps)}: a promise never decreases",
                )
        # The messages of a frame are held to the promises before it: its own promises speak of later frames only.
        news = promises_ps[1:] != self._promises_ps[1:]
        self._promises_ps = promises_ps
        self.eit_ps = max(self.eit_ps, frame.promise_ps)
        self.received += len(frame.messages)
        return news

    def grant(self, lbts_ps: int) -> None:
        """No LP executes an event before `lbts_ps` any more, hence nothing sent from now on arrives a lookahead later."""
        self.eit_ps = max(self.eit_ps, later_ps(lbts_ps, self.lookahead_ps))

    def _check(self, message: Message, now_ps: int) -> None:
        if message.time_ps < self.eit_ps:
            rule = "no message comes before what was promised or granted on its channel"
            raise CausalityError(self.name, message.time_ps, self.eit_ps, rule)
        if message.time_ps < now_ps:
            rule = "no message comes before the time up to which its target has executed"
            raise CausalityError(self.name, message.time_ps, now_ps, rule)


class OutChannel:
    """The sending end. The last promises made bind every message posted after them."""

    __slots__ = ("_pending", "_promises_ps", "lookahead_ps", "name", "sent")

    def __init__(self, lp: int, peer: int, lookahead_ps: int) -> None:
        self.name = _channel_name(lp, peer, lookahead_ps)
        self.lookahead_ps = lookahead_ps
        self.sent = 0
        self._promises_ps = (lookahead_ps,)
        self._pending: list[Message] = []

    @property
    def promise_ps(self) -> int:
        """The promise for all messages."""
        return self._promises_ps[0]

    @property
    def has_pending(self) -> bool:
        """Whether messages wait for the next frame."""
        return bool(self._pending)

    def post(self, message: Message, remaining_hops: int = 0) -> None:
        """Keep `message` for the next frame; `CausalityError` if it comes before the promise for so many remaining_hops."""
        promise_ps = _of(self._promises_ps, remaining_hops)
        if message.time_ps < promise_ps:
            rule = "no message is sent before the promise made on its channel"
            raise CausalityError(self.name, message.time_ps, promise_ps, rule)
        self._pending.append(message)

    def eots_ps(self, earliest_send_ps: Sequence[int]) -> tuple[int, ...]:
        """By remaining_hops, the earliest output time, if no event hands a message to this channel before `earliest_send_ps`.

        Never before the promise made: that stays true.
        """
        return tuple(
            max(_of(self._promises_ps, remaining_hops), later_ps(send_ps, self.lookahead_ps))
            for remaining_hops, send_ps in enumerate(earliest_send_ps)
        )

    def beyond_promises(self, eots_ps: Sequence[int]) -> bool:
        """Whether any of them is more than has been promised."""
        return any(
            eot_ps > _of(self._promises_ps, remaining_hops)
            for remaining_hops, eot_ps in enumerate(eots_ps)
        )

    def frame(self, eots_ps: tuple[int, ...], null_hops: int) -> Frame:
        """Everything pending, and `eots_ps` as promises."""
        self._promises_ps = eots_ps
        frame = Frame(eots_ps[0], null_hops, tuple(self._pending), eots_ps[1:])
        self.sent += len(self._pending)
        self._pending.clear()
        return frame
