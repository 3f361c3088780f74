"""An input-queued router with virtual channels and credits (Dally & Towles, chapters 16 to 18).

    head arrives   route   allocate a VC   allocate the switch   traverse   wire -> next router

An input channel has one packet at a time in this pipeline: the next one is routed in the cycle
after the tail of the first has won the switch. Flits of different packets share a link in turn.

Both allocations are separable, input first, in one iteration: each input requests one resource,
each resource is given to one of the inputs that request it. All choose in turn; a turn moves on
when a choice has been accepted, and one that has not is lost for the cycle.

- *Allocation of channels.* A head requests the first free channel behind that of the packet before
  it in its input, if both have the same output; else the first free one. A channel takes inputs in
  turn, and heads of an input in turn: in turn over the channels of all inputs, an input with heads
  in more channels would have more of the output. It is free in the cycle after the tail of its
  packet has won the switch.
- *Allocation of the switch.* Of each input one channel requests it: that of the output whose turn
  it is, and of several for this output, in turn. Each output takes inputs in turn. If the output
  were the first to choose, one to which nearly all flits of a router go, as at a hot spot, would
  often have its grant refused by an input that has flits for another output as well.

There are no random numbers: turns are pointers.
"""

from sip_node.chip.fabric.clocked.cycle_queue import Arbiter, CycleQueue
from sip_node.chip.fabric.clocked.virtual_channels import InputPort, OutputPort, VirtualChannel
from sip_node.chip.fabric.clocked.worm import Pipeline
from sip_node.kernel.containers import linked_list as lists
from sip_node.kernel.containers.linked_list import LinkedList


class Router(Arbiter):
    """A router, which requests the switch `allocate` cycles after it has given a head a channel."""

    def __init__(self, queue: CycleQueue, pipeline: Pipeline) -> None:
        super().__init__(queue)
        self.allocate, self.leave = pipeline.allocate, pipeline.leave
        self.inputs: list[InputPort] = []
        self.outputs = 0
        # Of one cycle: heads; the channels that they request; inputs with requests of the switch;
        # outputs with requests of these inputs.
        self._heads, self._requested = LinkedList(), list[VirtualChannel]()
        self._inputs, self._switched = LinkedList(), LinkedList()

    def input(self, index: int) -> InputPort:
        """A further input."""
        entrance = InputPort(index)
        for _ in range(self.outputs):
            entrance.next_channels.append(0)
        self.inputs.append(entrance)
        return entrance

    def add_output(self, port: OutputPort) -> None:
        """A port is a further output."""
        port.number = self.outputs
        self.outputs += 1
        for entrance in self.inputs:
            entrance.next_channels.append(0)

    def arbitrate(self, now: int) -> None:
        """Allocate channels, then the switch."""
        if not lists.has_one(self.members):
            self._compete(now)
            return
        # The common case: no competition.
        channel: VirtualChannel = lists.take(self.members)
        if channel.held is None:
            vc = self._wanted(channel, now)
            if vc is not None and self._give(vc, channel, now):
                self._traverse(channel, now)
        elif channel.network.port.free_at > now:
            self.queue.add(channel, channel.network.port.free_at)
        else:
            self._traverse(channel, now)

    def _compete(self, now: int) -> None:
        """The same for several channels with a request."""
        item = lists.take(self.members)
        while item is not None:
            channel: VirtualChannel = item
            item = lists.following(channel)
            if channel.held is None:
                self._insert(channel)
            else:
                self._request_switch(channel, now)
        if lists.is_empty(self._heads):
            pass
        elif lists.has_one(self._heads):
            head: VirtualChannel = lists.take(self._heads)
            vc = self._wanted(head, now)
            if vc is not None and self._give(vc, head, now):
                self._request_switch(head, now)
        else:
            self._give_channels(now)
        self._allocate_switch(now)

    def _insert(self, head: VirtualChannel) -> None:
        """Put a head in the order of inputs and of channels there.

        A fixed order, for it decides which takes the space of a receiver first.
        """
        heads = self._heads
        before, item = None, lists.first(heads)
        while item is not None:
            other: VirtualChannel = item
            if head.place() < other.place():
                break
            before, item = other, lists.following(other)
        lists.insert(heads, before, head)

    def _give_channels(self, now: int) -> None:
        """Give channels to heads; some of them request the switch in the same cycle."""
        item, requested = lists.take(self._heads), self._requested
        while item is not None:
            channel: VirtualChannel = item
            item = lists.following(channel)
            vc = self._wanted(channel, now)
            if vc is None:
                continue
            rival = vc.nominee
            if rival is None:
                vc.nominee = channel
                requested.append(vc)
            # A request that is refused is repeated in the next cycle: hardware has time for one
            # iteration of the allocation in a cycle (Dally & Towles, chapter 19).
            elif channel.turn_at(vc) < rival.turn_at(vc):
                vc.nominee = channel
                self.queue.add(rival, now + 1)
            else:
                self.queue.add(channel, now + 1)
        for index in range(len(requested)):
            vc = requested[index]
            channel, vc.nominee = vc.nominee, None
            if self._give(vc, channel, now):
                self._request_switch(channel, now)
        del requested[:]

    def _wanted(self, channel: VirtualChannel, now: int) -> VirtualChannel | None:
        """The channel for which a head requests; without a free one, it waits."""
        network = channel.network
        first = network.first
        # Behind the channel of the packet before: a long packet there does not hold up this one.
        if channel.last_network is network:
            first = channel.last_held.following
        vc = first
        while vc.free_at > now:
            vc = vc.following
            if vc is first:
                lists.put(network.waiting, channel)
                return None
        return vc

    def _give(self, vc: VirtualChannel, channel: VirtualChannel, now: int) -> bool:
        """Give a head a free channel; whether it requests the switch in the same cycle."""
        network = channel.network
        # Space at the receiver is taken with the channel: a packet that began without it would stop
        # inside the network, and hold its channels against packets for other receivers.
        if network.is_limited and not network.admits(channel, now):
            lists.put(network.waiting, channel)
            return False
        vc.give_to(channel)
        cycle = channel.earliest(now + self.allocate)
        if cycle > now:
            self.queue.add(channel, cycle)
        return cycle == now

    def _request_switch(self, channel: VirtualChannel, now: int) -> None:
        """Become the nominee of an input; the others, but for the first in turn, have lost."""
        entrance, port = channel.port, channel.network.port
        rival = entrance.nominee
        # An input has one path into the crossbar, so one of its channels competes in a cycle.
        if port.free_at > now:
            self.queue.add(channel, port.free_at)
        elif rival is None:
            entrance.nominee = channel
            lists.put(self._inputs, entrance)
        elif channel.turn_at_input() < rival.turn_at_input():
            entrance.nominee = channel
            self.queue.add(rival, now + 1)
        else:
            self.queue.add(channel, now + 1)

    def _allocate_switch(self, now: int) -> None:
        """The nominees of inputs compete for outputs; the winners traverse, the others wait."""
        item = lists.take(self._inputs)
        while item is not None:
            entrance: InputPort = item
            item = lists.following(entrance)
            channel, entrance.nominee = entrance.nominee, None
            port = channel.network.port
            rival = port.nominee
            if rival is None:
                port.nominee = channel
                lists.put(self._switched, port)
            # Round robin: the input that was served last is last in turn, so no input starves at a
            # busy output.
            elif channel.turn_at_output() < rival.turn_at_output():
                port.nominee = channel
                self.queue.add(rival, now + 1)
            else:
                self.queue.add(channel, now + 1)
        item = lists.take(self._switched)
        while item is not None:
            port = item
            item = lists.following(port)
            channel, port.nominee = port.nominee, None
            self._traverse(channel, now)

    def _traverse(self, channel: VirtualChannel, now: int) -> None:
        """A flit of `channel` has won the switch."""
        network, vc, worm, entrance = channel.network, channel.held, channel.worm, channel.port
        assert vc is not None, "it has requested the switch"
        assert worm is not None, "it has a flit"
        port = network.port
        # Turns move here alone, where both stages have accepted the request. If a refused choice
        # moved them, inputs would keep step and collide in every cycle (iSLIP, McKeown 1999).
        entrance.next_channels.values[port.number] = channel.index + 1
        entrance.pointer = port.index + 1
        port.pointer = entrance.index + 1
        # A link that is narrower than a flit is busy for several cycles.
        port.free_at = now + port.flit_cycles
        port.flits += 1
        # The stages of the pipeline are no wait: only what a flit stands longer is contention.
        waited = now - channel.take(now) - channel.routing - self.allocate
        is_head = channel.left == worm.flits
        if worm.packet.train is not None:
            port.record(worm, now, waited if is_head else -1)
        if is_head:
            port.nbytes += worm.nbytes
            port.queued_cycles += waited
            if vc.depth:
                vc.head(worm, now + port.delay)
        elif vc.depth:
            vc.body(now + port.delay)
        channel.left -= 1
        if channel.left:
            channel.wake(now + 1)
        else:
            if not vc.depth:
                network.eject(worm, now + port.delay)
            # The next packet may follow this one into the same buffer, which need not be empty. A
            # channel that stayed reserved until its last credit is back would idle for a round
            # trip.
            vc.free_at = now + 1
            if not lists.is_empty(network.waiting):
                network.retry(now + 1)
            channel.end(now)
