"""The two ends of a channel: a FIFO of timestamped messages from one LP to another.

Its `lookahead_ps` is the least time between the event that sends a message and the arrival of the message. No event is
executed before time 0, so a fresh channel stands at a promise of one lookahead without a frame having been sent.
"""

from runtime.errors import CausalityError, ConfigError, ProtocolError
from runtime.simtime import NEVER_PS, format_ps
from runtime.wire.messages import Frame, Message


def later_ps(time_ps: int, delay_ps: int) -> int:
    """`time_ps + delay_ps`; never stays never."""
    return min(time_ps + delay_ps, NEVER_PS)


def _channel_name(source: int, target: int, lookahead_ps: int) -> str:
    name = f"channel LP {source} -> LP {target}"
    if lookahead_ps <= 0:
        raise ConfigError(name, "", f"lookahead of {lookahead_ps} ps: conservative synchronisation needs more than 0")
    return name


class InChannel:
    """The receiving end. `eit_ps` (earliest input time): no message still to come is earlier."""

    __slots__ = ("_promise_ps", "eit_ps", "lookahead_ps", "name", "received")

    def __init__(self, peer: int, lp: int, lookahead_ps: int) -> None:
        self.name = _channel_name(peer, lp, lookahead_ps)
        self.lookahead_ps = lookahead_ps
        self.eit_ps = self._promise_ps = lookahead_ps
        self.received = 0

    def receive(self, frame: Frame, now_ps: int) -> None:
        """Account for `frame`. `now_ps`: every event before it has been executed.

        Raises `CausalityError` for a message that comes too late and `ProtocolError` for a promise that decreases.
        """
        for message in frame.messages:
            self._check(message, now_ps)
        if frame.promise_ps < self._promise_ps:
            raise ProtocolError(
                self.name,
                f"promise of {format_ps(frame.promise_ps)} after a promise of {format_ps(self._promise_ps)}: "
                "a promise never decreases",
            )
        # The messages of a frame are held to the promises before it: its own promise speaks of later frames only.
        self._promise_ps = frame.promise_ps
        self.eit_ps = max(self.eit_ps, frame.promise_ps)
        self.received += len(frame.messages)

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
    """The sending end. `promise_ps`: the last promise made, which binds every message posted after it."""

    __slots__ = ("_pending", "lookahead_ps", "name", "promise_ps", "sent")

    def __init__(self, lp: int, peer: int, lookahead_ps: int) -> None:
        self.name = _channel_name(lp, peer, lookahead_ps)
        self.lookahead_ps = lookahead_ps
        self.promise_ps = lookahead_ps
        self.sent = 0
        self._pending: list[Message] = []

    @property
    def has_pending(self) -> bool:
        """Whether messages wait for the next frame."""
        return bool(self._pending)

    def post(self, message: Message) -> None:
        """Keep `message` for the next frame; `CausalityError` if it comes before the promise."""
        if message.time_ps < self.promise_ps:
            rule = "no message is sent before the promise made on its channel"
            raise CausalityError(self.name, message.time_ps, self.promise_ps, rule)
        self._pending.append(message)

    def eot_ps(self, earliest_send_ps: int) -> int:
        """Earliest output time, if no event hands a message to this channel before `earliest_send_ps`."""
        return later_ps(earliest_send_ps, self.lookahead_ps)

    def frame(self, eot_ps: int, null_hops: int) -> Frame:
        """Everything pending, and the better of `eot_ps` and the promise made before."""
        self.promise_ps = max(self.promise_ps, eot_ps)
        frame = Frame(self.promise_ps, null_hops, tuple(self._pending))
        self.sent += len(self._pending)
        self._pending.clear()
        return frame
