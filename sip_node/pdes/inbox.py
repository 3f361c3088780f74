"""The inbox of a SIP: messages from other SIPs, of this LP and of others, in one total order."""

from collections.abc import Callable
from heapq import heappop, heappush

from runtime.wire.frames import Message
from sip_node.pdes.engine import ARRIVALS_FIRST, Engine


class Inbox:
    """Keeps messages by `(time_ps, source, seq)`.

    All messages of one time are received in one event, before any local event of that time. So
    their order does not depend on which of them crossed a process boundary.
    """

    def __init__(self, engine: Engine, receive: Callable[[Message], None]) -> None:
        self._engine, self._receive = engine, receive
        self._messages: list[tuple[int, int, int, Message]] = []
        # Times for which an event is scheduled; only tested, never iterated.
        self._due: set[int] = set()
        self.received = 0

    def put(self, message: Message) -> None:
        """Add a message; its time must lie in the future, so that its event still comes first."""
        assert message.time_ps > self._engine.now_ps, (
            f"a message for {message.time_ps} ps came at {self._engine.now_ps} ps"
        )
        # (time, source, seq) is unique, so the messages themselves are never compared.
        heappush(self._messages, (message.time_ps, message.source, message.seq, message))
        if message.time_ps not in self._due:
            self._due.add(message.time_ps)
            self._engine.at(message.time_ps, self._empty, priority=ARRIVALS_FIRST)

    def _empty(self) -> None:
        now_ps = self._engine.now_ps
        # A message for this time that comes later finds no event: `put` refuses it.
        self._due.discard(now_ps)
        while self._messages and self._messages[0][0] == now_ps:
            self.received += 1
            self._receive(heappop(self._messages)[3])
