"""The inbox of a SIP: packets from other SIPs, of this LP and of others, in one total order."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Generic, TypeVar

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.pdes.engine import ARRIVALS_FIRST, Engine

P = TypeVar("P")


class ReferenceInbox(Generic[P]):
    """Keeps packets by `(time_ps, source, seq)`: `seq` counts the packets from one source.

    All packets of one time are received in one event, before any local event of that time. So
    their order does not depend on which of them crossed a process boundary. `receive` is called
    with a packet, the time of its tail, and its source.
    """

    def __init__(self, engine: Engine, receive: Callable[[P, int, int], None]) -> None:
        self._engine, self._receive = engine, receive
        self._packets: list[tuple[int, int, int, int, P]] = []
        # Times for which an event is scheduled; only tested, never iterated.
        self._due: set[int] = set()
        self.received = 0

    def put(self, time_ps: int, source: int, seq: int, tail_ps: int, packet: P) -> None:
        """Add a packet whose head comes at `time_ps`, its tail at `tail_ps`.

        The time must lie in the future, so that its event still comes first.
        """
        assert time_ps > self._engine.now_ps, (
            f"a packet for {time_ps} ps came at {self._engine.now_ps} ps"
        )
        # (time, source, seq) is unique, so the packets themselves are never compared.
        heappush(self._packets, (time_ps, source, seq, tail_ps, packet))
        if time_ps not in self._due:
            self._due.add(time_ps)
            self._engine.at(time_ps, self._empty, priority=ARRIVALS_FIRST)

    def _empty(self) -> None:
        now_ps = self._engine.now_ps
        # A packet for this time that comes later finds no event: `put` refuses it.
        self._due.discard(now_ps)
        while self._packets and self._packets[0][0] == now_ps:
            _, source, _, tail_ps, packet = heappop(self._packets)
            self.received += 1
            self._receive(packet, tail_ps, source)


if TYPE_CHECKING or not IS_COMPILED:
    Inbox = ReferenceInbox
else:
    from sip_node.compiled.crossings import Inbox  # noqa: F401 - the name of this module
