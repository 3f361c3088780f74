"""The source of a link into the routers: the network interface of a component.

Packets wait without a limit, in one queue for each virtual network. The link takes one flit at a
time, of the queues in turn. A packet enters the next virtual channel that has a credit.
"""

from collections import deque

import sip_node.chip.fabric.clocked.cycle_queue as cycles
import sip_node.chip.fabric.clocked.virtual_channels as links
import sip_node.chip.fabric.clocked.worm as worms
from sip_node.chip.fabric.clocked.cycle_queue import Arbiter, CycleQueue, Requester
from sip_node.chip.fabric.clocked.virtual_channels import OutputPort, VirtualChannel, VirtualNetwork
from sip_node.chip.fabric.clocked.worm import NocClock, Worm
from sip_node.kernel import exact
from sip_node.kernel.component import Component
from sip_node.kernel.containers import linked_list as lists
from sip_node.kernel.containers.linked_list import LinkedList


class Injection(Requester):
    """The packets of one virtual network that wait at a source, the first one partly sent."""

    def __init__(self, injector: "Injector", network: VirtualNetwork, clock: NocClock) -> None:
        super().__init__(injector)
        self.network, self._clock = network, clock
        # The packet that is sent, and those behind it.
        self.worm: Worm | None = None
        self.waiting: deque[Worm] = deque()
        self.left = 0
        self.channel: VirtualChannel | None = None
        # The last one before the first.
        self._last = network.channels[len(network.channels) - 1]
        self._waits = False

    def put(self, worm: Worm) -> None:
        """Send a packet after those before it."""
        worm.cycle = self._clock.cycle(worm.head_ps)
        if self.worm is not None:
            self.waiting.append(worm)
        else:
            self._begin(worm, worm.cycle)

    def _begin(self, worm: Worm, cycle: int) -> None:
        self.worm, self.left = worm, worm.flits
        self.wake(cycle)

    def earliest(self, cycle: int) -> int:
        """The first cycle from `cycle` on in which it can request the link, or `DORMANT`."""
        credit = self._credit()
        if credit == cycles.DORMANT:
            return cycles.DORMANT
        available, free_at = self._available(), self.network.port.free_at
        return max(cycle, credit, available, free_at)

    def _credit(self) -> int:
        """The cycle from which a channel for the next flit has a credit, or `DORMANT`.

        Without a credit it waits for one of them.
        """
        channel = self.channel
        if channel is not None:
            usable = channel.credit()
            channel.waiting = self if usable == cycles.DORMANT else None
            return usable
        first = channel = self.network.first
        usable = first.credit()
        while channel.following is not first:
            channel = channel.following
            credit = channel.credit()
            if credit != cycles.DORMANT and (usable == cycles.DORMANT or credit < usable):
                usable = credit
        if (usable == cycles.DORMANT) != self._waits:
            self._wait_or_not()
        return usable

    def _wait_or_not(self) -> None:
        """Wait for a credit of any channel, or no longer."""
        self._waits, first = not self._waits, self.network.first
        channel = first.following
        first.waiting = self if self._waits else None
        while channel is not first:
            channel.waiting = first.waiting
            channel = channel.following

    def send(self, now: int) -> Worm | None:
        """Send a flit; returns the packet if this was its last one."""
        worm, port, channel = self.worm, self.network.port, self.channel
        assert worm is not None, "a queue with a request has a packet"
        if channel is None:
            channel = self.channel = self._next_channel(now)
        is_head = self.left == worm.flits
        waited = now - worm.cycle
        if worm.packet.train is not None:
            port.record(worm, now, waited if is_head else -1)
        if is_head:
            port.nbytes += worm.nbytes
            port.queued_cycles += waited
            channel.head(worm, now + port.delay)
        else:
            channel.body(now + port.delay)
        self.left -= 1
        if self.left:
            self.wake(now + 1)
            return None
        self.worm = self.channel = None
        if self.waiting:
            self._begin(self.waiting.popleft(), now + 1)
        return worm

    def _next_channel(self, now: int) -> VirtualChannel:
        # Round robin over the channels: the next packet takes another buffer, so a packet that is
        # blocked does not hold it up (head-of-line blocking).
        first = channel = self._last.following
        credit = channel.credit()
        while credit == cycles.DORMANT or credit > now:
            channel = channel.following
            assert channel is not first, "a queue has requests only when a channel has a credit"
            credit = channel.credit()
        self._last = channel
        return channel

    def _available(self) -> int:
        """The cycle from which the next flit is complete at the source."""
        worm = self.worm
        assert worm is not None, "a queue with a request has a packet"
        # All bytes are there, since a component has made the packet.
        if worm.tail_ps == worm.head_ps:
            return 0
        begun = worm.flits - self.left + 1
        # The bytes come at an even rate between head and tail.
        span_ps = exact.ceil_ratio(worm.tail_ps - worm.head_ps, begun, worm.flits)
        return self._clock.cycle(worm.head_ps + span_ps)


class Injector(Arbiter):
    """The source of the link behind `port`.

    When a packet of a path with departures has left its queue, `fabric` has an event.
    """

    def __init__(self, queue: CycleQueue, port: OutputPort, fabric: Component) -> None:
        super().__init__(queue)
        self._port, self._fabric = port, fabric
        # Of one cycle: the queues that send nothing in it.
        self._others = LinkedList()

    def arbitrate(self, now: int) -> None:
        """Send a flit of the next queue with a request."""
        chosen = None
        if self._port.free_at <= now:
            if lists.has_one(self.members):
                self._send(lists.take(self.members), now)
                return
            chosen = self._first_in_turn()
        item, others = lists.take(self.members), self._others
        while item is not None:
            queue: Injection = item
            item = lists.following(queue)
            if queue is not chosen:
                lists.put(others, queue)
        if chosen is not None:
            self._send(chosen, now)
        item, free_at = lists.take(others), self._port.free_at
        while item is not None:
            queue = item
            item = lists.following(queue)
            self.queue.add(queue, max(now + 1, free_at))

    def _first_in_turn(self) -> Injection:
        """The first queue in turn of those with a request."""
        item = lists.first(self.members)
        first: Injection = item
        least = links.TURNS + 1
        while item is not None:
            queue: Injection = item
            item = lists.following(queue)
            turn = (queue.network.index - self._port.pointer) & links.TURNS
            if turn < least:
                first, least = queue, turn
        return first

    def _send(self, queue: Injection, now: int) -> None:
        port = self._port
        # A turn moves only behind a flit that is sent, so no queue loses its turn without service
        # (iSLIP, McKeown 1999).
        port.pointer = queue.network.index + 1
        port.free_at = now + port.flit_cycles
        port.flits += 1
        worm = queue.send(now)
        if worm is not None and worm.path.departures is not None:
            worm.path.departures.nbytes -= worm.nbytes
            self._fabric.later((now + 1) * self.queue.period_ps, worms.LEFT, worm)
