"""The queueing of packets behind packets of other transfers, for the records of a run.

The packets of a transfer are a train: on a link they queue behind each other, and that is no delay
by others. So a train has, for every link that it passes, the time at which the link would be free
if it carried nothing else, and a packet has queued behind others for what is left:

    own start = max(head, own end of the packet before)     wait behind others = start - own start
    own end   = tail - wait behind others

A train belongs to one SIP. What its packets have queued before they leave a SIP is reported there,
with the record of the UCIe port.
"""

from sip_node.kernel.containers.int_array import IntArray

MOST_CHANNELS = 64
"""Channels of a memory behind these share the times of the first ones."""
PORT = -1
"""Instead of the number of a stage: the port of a switch, before the first link."""


class QueueTimes:
    """The longest times for which one packet of an operation has queued behind other transfers.

    `link_ps` at links, of which it queued longest at `link`; `memory_ps` at a memory or a port.
    """

    __slots__ = ("link", "link_ps", "memory_ps")

    def __init__(self) -> None:
        self.link_ps = self.memory_ps = 0
        self.link = ""

    def at_links(self, link_ps: int, link: str) -> None:
        """A packet has queued at links for `link_ps`, longest at `link`."""
        if link_ps > self.link_ps:
            self.link_ps, self.link = link_ps, link

    def at_memory(self, memory_ps: int) -> None:
        """A packet has queued at a memory or a port."""
        self.memory_ps = max(self.memory_ps, memory_ps)

    def add(self, other: "QueueTimes") -> None:
        """Add what packets of the same operation have queued elsewhere."""
        self.at_links(other.link_ps, other.link)
        self.at_memory(other.memory_ps)


class PacketTrain:
    """The packets of a transfer in one SIP, for an operation with the queueing times `times`."""

    __slots__ = ("_channels", "_links", "_port_ps", "times")

    def __init__(self, times: QueueTimes) -> None:
        self.times = times
        self._links: dict[int, int] = {}
        self._channels: dict[int, int] = {}
        self._port_ps = 0

    def at_link(self, stage: int, head_ps: int, start_ps: int, tail_ps: int) -> int:
        """The time for which a packet has queued behind others at stage `stage` of its route."""
        own_ps = max(head_ps, self._links.get(stage, 0))
        waited_ps = max(start_ps - own_ps, 0)
        self._links[stage] = tail_ps - waited_ps
        return waited_ps

    def at_router(self, hop: int, packet: int, waited_ps: int) -> int:
        """The same behind a clocked router, where the head of a packet has waited for its link.

        `packet` is its number on the link. A head that follows a packet of its own train has
        waited for no other.
        """
        is_next = self._links.get(hop, 0) == packet - 1
        self._links[hop] = packet
        return 0 if is_next and packet > 1 else waited_ps

    def at_channels(self, needed: IntArray, arrived_ps: int, start_ps: int, end_ps: int) -> None:
        """An access to channels of a memory, which arrived at `arrived_ps`, begins.

        Channels behind the 64th share the times of the first ones.
        """
        own_ps, channels = arrived_ps, self._channels
        for each in needed.values:
            own_ps = max(own_ps, channels.get(each % MOST_CHANNELS, 0))
        waited_ps = max(start_ps - own_ps, 0)
        for each in needed.values:
            channels[each % MOST_CHANNELS] = end_ps - waited_ps
        self.times.at_memory(waited_ps)

    def at_port(self, head_ps: int, start_ps: int, tail_ps: int) -> None:
        """A packet passes the port of a TCM, on its way out or at its end."""
        waited_ps = max(start_ps - max(head_ps, self._port_ps), 0)
        self._port_ps = tail_ps - waited_ps
        self.times.at_memory(waited_ps)
