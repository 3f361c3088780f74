"""Holds what an LP has received until it has been on its way for a fixed time: without any I/O."""

from collections import deque
from collections.abc import Iterable

from runtime.wire.frames import Envelope

_LATE_NS = 1 << 62


class DelayLine:
    """Emulates a network between hosts that takes `delay_s`, for LPs with a common clock.

    The contents of a peer leave in their order, since the delay is the same for all.
    """

    def __init__(self, delay_s: float) -> None:
        self._delay_ns = round(delay_s * 1e9)
        self._held: dict[int, deque[Envelope]] = {}

    def hold(self, received: Iterable[Envelope]) -> None:
        """Take what has been received."""
        for envelope in received:
            self._held.setdefault(envelope.lp, deque()).append(envelope)

    def due(self, now_ns: int) -> list[Envelope]:
        """The envelopes whose time is over; they are not held any longer."""
        sent_ns = now_ns - self._delay_ns
        due: list[Envelope] = []
        for queue in self._held.values():
            while queue and queue[0].sent_ns <= sent_ns:
                due.append(queue.popleft())
        return due

    def next_ns(self) -> int:
        """When the next envelope is due; very late if none is held."""
        sent_ns = [queue[0].sent_ns for queue in self._held.values() if queue]
        return min(sent_ns, default=_LATE_NS) + self._delay_ns
