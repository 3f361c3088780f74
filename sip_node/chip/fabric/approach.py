"""Foresight of packets that leave a SIP: their certain times at the IO NoC and at a UCIe port.

A packet for another SIP passes one last link of the fabric, then the IO NoC and a UCIe port. From
the event in which it reserves that link, its time at the IO NoC is known:

    router --reserves--> last link --(queue, bytes, 18 ns)--> IO NoC --> UCIe port --> next SIP
                         |<---------- known from here ------>|

- *Gate.* A link is a FIFO. A packet that has not reserved it comes when it is free again, or later.
  Where kernels send faster than it carries, that is microseconds ahead.
- *Foreseen.* Before the least gate of all that may still come, the packets at a UCIe port are
  known, and so is their service there. They enter their messages before the events in which they
  cross, and these events check what was foreseen.
"""

from typing import TYPE_CHECKING

from runtime.core.errors import InvariantError
from sip_node.chip.fabric.packet import Packet
from sip_node.chip.fabric.server import FifoServer
from sip_node.kernel import exact
from sip_node.pdes.sender import Sender

if TYPE_CHECKING:
    from sip_node.chip.ports.link_egress import LinkEgress

_MANY_CROSSED = 256
"""Packets that have crossed, which an approach forgets together."""


class Coming:
    """A packet whose head and tail are at the IO NoC at known times.

    `order` is its place among all that come. Once it is foreseen, `start_ps` and `left_ps` are its
    service at the UCIe port. It has no packet any more when that has crossed.
    """

    packet: Packet | None
    head_ps: int
    tail_ps: int
    order: int
    start_ps: int
    left_ps: int

    def is_earlier(self, other: "Coming") -> bool:
        """Whether it is at the IO NoC before another packet."""
        if self.head_ps != other.head_ps:
            return self.head_ps < other.head_ps
        return self.order < other.order


class Approach:
    """A last link, with the delays before and after it, and the packets that have reserved it.

    Of these, the packets before `crossed` have crossed, and those before `foreseen` are foreseen.
    """

    def __init__(self, lookout: "Lookout", server: FifoServer, pre_ps: int, post_ps: int) -> None:
        self._lookout, self.server = lookout, server
        self._pre_ps, self._post_ps = pre_ps, post_ps
        # By target, what is on its way to the link.
        self.senders: dict[int, Sender] = {}
        self.coming: list[Coming] = []
        self.crossed = self.foreseen = 0

    def earliest_ps(self, base_ps: int) -> int:
        """No packet that has not reserved the link is at the IO NoC earlier.

        That holds if no event is executed before `base_ps`.
        """
        # A link is a FIFO, so a packet that reserves it later starts behind all that have reserved
        # it: the time at which the link is free bounds every packet to come.
        ready_ps = exact.later_ps(base_ps, self._pre_ps)
        return exact.later_ps(max(ready_ps, self.server.free_ps), self._post_ps)

    def depart(self, packet: Packet) -> None:
        """A packet for another SIP is on its way to the link."""
        sip = packet.transfer.sip
        sender = self.senders.get(sip)
        if sender is None:
            sender = self.senders[sip] = Sender(exact.NEVER_PS)
        packet.approach = self
        sender.departed(packet.entrance_ps)

    def reserve(self, packet: Packet, head_ps: int, tail_ps: int) -> None:
        """A packet has reserved the link: its head is at the IO NoC at `head_ps`."""
        sender = self.senders[packet.transfer.sip]
        sender.entered(packet.entrance_ps)
        # Together, since deleting the first of a list moves all others.
        if self.crossed >= _MANY_CROSSED and 2 * self.crossed >= len(self.coming):
            del self.coming[: self.crossed]
            self.foreseen -= self.crossed
            self.crossed = 0
        coming = Coming.__new__(Coming)
        coming.packet, coming.head_ps, coming.tail_ps = packet, head_ps, tail_ps
        coming.start_ps = coming.left_ps = 0
        coming.order = self._lookout.orders
        self._lookout.orders += 1
        self.coming.append(coming)

    def cross(self, packet: Packet) -> Coming:
        """The head of the next packet is at the IO NoC now: its service, as it was foreseen."""
        coming = self.coming[self.crossed]
        if coming.packet is not packet:
            raise InvariantError("IO NoC", "packets of one link have overtaken each other")
        # It was not certain when the last promise was made, and it crosses now.
        if self.foreseen == self.crossed:
            self._lookout.foresee_next(self)
        self.crossed += 1
        coming.packet = packet.approach = None
        return coming


class Lookout:
    """The approaches of one SIP, and what is foreseen of its UCIe ports.

    `egress_to` are the links to the next SIP whose crossings are foreseen, by target; None where
    nothing is.
    """

    def __init__(self) -> None:
        self._approaches: dict[tuple[int, int, int], Approach] = {}
        self._listed: list[Approach] = []
        self.egress_to: list[LinkEgress | None] | None = None
        self.orders = 0

    def bounds(self, base_ps: int) -> list[tuple[int, int]]:
        """(target, time) for all packets on their way to a last link.

        None of them is at the IO NoC earlier, if no event is executed before `base_ps`.
        """
        bounds: list[tuple[int, int]] = []
        for approach in self._listed:
            for sip, sender in approach.senders.items():
                if sender.in_flight_ps.size:
                    earliest_ps = sender.earliest_send_ps(base_ps)
                    bounds.append((sip, max(earliest_ps, approach.earliest_ps(base_ps))))
        return bounds

    def foresee(self, before_ps: int) -> int:
        """Let the packets that are at the IO NoC before `before_ps` enter their messages.

        No other packet may come to a UCIe port before. Returns when the first of the others that
        are known is there, `NEVER_PS` without any.
        """
        while True:
            approach = self._first()
            if approach is None:
                return exact.NEVER_PS
            coming = approach.coming[approach.foreseen]
            # Another packet may still come to the port before this one, and a FIFO would serve it
            # first.
            if coming.head_ps >= before_ps:
                return coming.head_ps
            self.foresee_next(approach)

    def approach(self, link: int, server: FifoServer, pre_ps: int, post_ps: int) -> Approach:
        """The approach by a link, with the delays of a route before and after it."""
        key = link, pre_ps, post_ps
        approach = self._approaches.get(key)
        if approach is None:
            approach = self._approaches[key] = Approach(self, server, pre_ps, post_ps)
            self._listed.append(approach)
        return approach

    def foresee_next(self, approach: Approach) -> None:
        """Foresee the next packet of an approach."""
        coming = approach.coming[approach.foreseen]
        packet = coming.packet
        approach.foreseen += 1
        assert packet is not None, "a packet that has not crossed"
        assert self.egress_to is not None, "an approach exists where something is foreseen"
        egress = self.egress_to[packet.transfer.sip]
        assert egress is not None, "the packet has an approach"
        foresee(egress, coming, packet)

    def _first(self) -> Approach | None:
        """The approach with the first packet that is not foreseen."""
        first: Approach | None = None
        first_coming: Coming | None = None
        for approach in self._listed:
            if approach.foreseen < len(approach.coming):
                coming = approach.coming[approach.foreseen]
                if first_coming is None or coming.is_earlier(first_coming):
                    first, first_coming = approach, coming
        return first


def watch(lookout: Lookout, egress_to: "list[LinkEgress | None]") -> bool:
    """Foresee the crossings of a fabric by the links to the next SIP, by target.

    Returns whether something is foreseen.
    """
    ahead: dict[FifoServer, FifoServer] = {}
    for egress in egress_to:
        if egress is not None:
            # A class of the user need not be a FIFO, and then no service can be computed ahead; nor
            # can it where each packet has a delay of its own.
            if egress.port.is_replaced or egress.jitter is not None:
                return False
            if egress.end.takes_early and egress.port not in ahead:
                # A second calendar: that of the port itself must not change before its events.
                ahead[egress.port] = egress.port.copied()
    watched: list[LinkEgress | None] = []
    for egress in egress_to:
        # Egresses to a switch share a port, and all that pass it have to be foreseen.
        if egress is not None:
            egress.ahead = ahead.get(egress.port)
        watched.append(None if egress is None or egress.ahead is None else egress)
    lookout.egress_to = watched
    return True


def foresee(egress: "LinkEgress", coming: Coming, packet: Packet) -> None:
    """A packet will be at the port, after all that were foreseen before it.

    Sets its service, and lets it enter its message.
    """
    ahead = egress.ahead
    assert ahead is not None, "a port whose crossings are foreseen"
    coming.start_ps = ahead.serve(coming.head_ps, coming.tail_ps, packet.size)
    coming.left_ps = ahead.tail_ps
    if egress.end.takes_early:
        egress.depart(packet, coming.start_ps, coming.left_ps)


def cross(egress: "LinkEgress", packet: Packet, tail_ps: int) -> int:
    """Send a packet whose head is at the IO NoC now; returns the time when its tail has left.

    Raises `InvariantError` where it was foreseen, and wrongly.
    """
    approach = packet.approach
    if approach is not None:
        coming = approach.cross(packet)
    elif egress.ahead is None:
        return egress.cross(packet, tail_ps)
    else:
        coming = Coming.__new__(Coming)
        coming.packet, coming.head_ps, coming.tail_ps = packet, egress.engine.now_ps, tail_ps
        coming.order = coming.start_ps = coming.left_ps = 0
        foresee(egress, coming, packet)
    start_ps = egress.serve(packet, tail_ps)
    left_ps = egress.port.tail_ps
    # Both calendars serve the same packets in the same order, so a difference is a defect; the
    # message may have been sent already, so it cannot be corrected.
    if start_ps != coming.start_ps or left_ps != coming.left_ps:
        raise InvariantError(
            egress.port.name,
            f"a packet leaves at {start_ps} ps, it was foreseen for {coming.start_ps} ps",
        )
    if not egress.end.takes_early:
        egress.depart(packet, start_ps, left_ps)
    return left_ps
