"""The inbox of a SIP: packets from other SIPs, of this LP and of others, in one total order."""

from collections.abc import Callable
from typing import Any

from sip_node.kernel.calendar import Calendar
from sip_node.kernel.component import Component
from sip_node.kernel.containers.arrival_queue import ArrivalQueue

_RECEIVE = 0


class Inbox(Component):
    """Keeps packets by `(time_ps, source, seq)`: `seq` counts the packets from one source.

    All packets of one time are received in one event, before any local event of that time. So
    their order does not depend on which of them crossed a process boundary. `receiver` is called
    with a packet, the time of its tail, and its source; a derived class may have its own `receive`.
    """

    def __init__(
        self, engine: Calendar, receiver: Callable[[Any, int, int], object] | None = None
    ) -> None:
        self.join(engine)
        self._receiver = receiver
        self._packets = ArrivalQueue()
        # Times for which an event is scheduled; only tested, never iterated.
        self._due: set[int] = set()
        self.received = 0

    def put(self, time_ps: int, source: int, seq: int, tail_ps: int, packet: Any) -> None:
        """Add a packet whose head comes at `time_ps`, its tail at `tail_ps`.

        The time must lie in the future, so that its event still comes first.
        """
        assert time_ps > self.engine.now_ps, (
            f"a packet for {time_ps} ps came at {self.engine.now_ps} ps"
        )
        self._packets.put(time_ps, source, seq, tail_ps, packet)
        if time_ps not in self._due:
            self._due.add(time_ps)
            # Ahead of local events of that time, which may have been scheduled before or after the
            # packet came: when it came depends on the wall clock, and the order must not.
            self.ahead(time_ps, _RECEIVE, None)

    def waiting(self) -> list[tuple[int, int, int, int, Any]]:
        """(time, source, seq, tail, packet) of every packet that is still to come, in order."""
        return self._packets.waiting()

    def withdraw(self) -> None:
        """Remove all packets, whose events have been removed from the calendar."""
        self._packets = ArrivalQueue()
        self._due.clear()

    def proceed(self, step: int, subject: Any) -> None:  # noqa: ARG002 - it has one step
        """Receive all packets of this time."""
        now_ps, packets = self.engine.now_ps, self._packets
        # A packet for this time that comes later finds no event: `put` refuses it.
        self._due.discard(now_ps)
        while packets.first_ps() == now_ps:
            packet = packets.pop()
            self.received += 1
            self.receive(packet, packets.tail_ps, packets.source)

    def receive(self, packet: Any, tail_ps: int, source: int) -> None:
        """The head of a packet is here."""
        assert self._receiver is not None, "an inbox with a receiver, or of a derived class"
        self._receiver(packet, tail_ps, source)
