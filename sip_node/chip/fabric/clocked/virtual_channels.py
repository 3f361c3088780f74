"""Links of clocked routers: their ends, and the virtual channels over them.

    output of a router or source           link           input of the next router
    OutputPort                       flits ----->         InputPort
      VirtualNetwork (class, layer)  <----- credits         the buffers of all networks
        VirtualChannel: its packet                          VirtualChannel: its buffer

Flits are no objects. A buffer is a ring of slots. A slot with a flit holds the cycle from which the
flit can be used; one without a flit the cycle from which its credit can be used by the sender. So a
flit and its credit are never in a buffer both, and the oldest credit is that of the next slot.
"""

from typing import Any

import sip_node.chip.fabric.clocked.cycle_queue as cycles
import sip_node.chip.fabric.clocked.worm as worms
from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.clocked.cycle_queue import Arbiter, CycleQueue, Requester
from sip_node.chip.fabric.clocked.worm import FlitCounters, NocClock, Worm
from sip_node.kernel.component import Component
from sip_node.kernel.containers import linked_list as lists
from sip_node.kernel.containers.int_array import IntArray
from sip_node.kernel.containers.linked_list import Linked, LinkedList

HELD = NEVER_PS
"""`VirtualChannel.free_at` while a packet has the channel."""
TURN_BITS = 30
"""More than an index of ports and channels has: differences of two, modulo this, are cyclic."""
TURNS = (1 << TURN_BITS) - 1


class OutputPort(FlitCounters):
    """An output and the link behind it.

    A flit can be used at the end of the link `delay` cycles after it has won the switch; the link
    is free for the next one in cycle `free_at`. `pointer` is the input behind that of its last
    flit, `number` its number at its router, `nominee` the channel that requests it in the present
    cycle, the first in turn so far.
    """

    def __init__(
        self, name: str, index: int, flit_cycles: int, delay: int, clock: NocClock
    ) -> None:
        super().__init__(name, index, flit_cycles, clock)
        self.delay = delay
        self.free_at = self.pointer = self.number = 0
        self.nominee: Any = None


class InputPort(Linked):
    """An input of a router: `pointer` is the output behind that of its last flit.

    `next_channels` is the channel behind that of the last flit, by the number of the output;
    `next_head` the channel behind that of the last head that got a channel; `nominee` the channel
    that requests the switch in the present cycle, the first in turn so far.
    """

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index, self.pointer, self.next_head = index, 0, 0
        self.next_channels = IntArray()
        self.nominee: Any = None


class VirtualNetwork:
    """The channels of one message class and layer at an output; packets never leave their class.

    `waiting` are the channels of the router whose packets need one of `channels`. With a limit,
    `space` is the number of flits for which the receiver has room: a packet takes its space with
    its channel. `exit_to` is the fabric, if this is an output that ejects.
    """

    def __init__(
        self,
        queue: CycleQueue,
        port: OutputPort,
        index: int,
        channels: int,
        exit_to: Component | None,
    ) -> None:
        self._queue, self._exit_to = queue, exit_to
        self.port, self.index = port, index
        self.channels = [VirtualChannel(number) for number in range(channels)]
        self._link_in_turn()
        self.waiting = LinkedList()
        self.is_limited, self.space, self._capacity = False, 0, 0
        self._short_of_space: list[VirtualChannel] = []

    def _link_in_turn(self) -> None:
        self.first = last = self.channels[0]
        for index in range(1, len(self.channels)):
            channel = self.channels[index]
            last.following, last = channel, channel
        last.following = self.first

    def limit(self, flits: int) -> None:
        """The receiver has room for `flits`; a longer packet enters when all of it is free."""
        if not self.is_limited:
            self.is_limited = True
            self.space = self._capacity = flits

    def admits(self, channel: "VirtualChannel", now: int) -> bool:
        """Take space for the packet of `channel`, if there is enough and no earlier one waits."""
        worm, short = channel.worm, self._short_of_space
        assert worm is not None, "a channel that requests has a packet"
        path = worm.path
        if worm.number != path.admitted:
            # It waits for its predecessor beside the buffer: in it, both could wait for each other.
            path.early[worm.number] = worm.flits
            return True
        # In turn, or else a long packet would wait for as long as short ones arrive.
        fits = self.space >= min(worm.flits, self._capacity)
        if not fits or (short and short[0] is not channel):
            if channel not in short:
                short.append(channel)
            return False
        self.space -= worm.flits
        path.admitted += 1
        while path.admitted in path.early:
            self.space -= path.early.pop(path.admitted)
            path.admitted += 1
        if short:
            # The next one may have space as well.
            del short[0]
            self.retry(now + 1)
        return True

    def give_back(self, flits: int, cycle: int) -> None:
        """The receiver has room for `flits` more from `cycle` on."""
        self.space += flits
        self.retry(cycle)

    def retry(self, cycle: int) -> None:
        """All that wait repeat their requests in `cycle`."""
        item = lists.take(self.waiting)
        while item is not None:
            channel: VirtualChannel = item
            item = lists.following(channel)
            self._queue.add(channel, cycle)

    def eject(self, worm: Worm, cycle: int) -> None:
        """The last flit of a packet is at its endpoint in `cycle`, complete at the end of it."""
        if self.is_limited:
            worm.packet.space = self
        assert self._exit_to is not None, "a path ends here"
        self._exit_to.later((cycle + 1) * self._queue.period_ps, worms.EJECTED, worm)


class VirtualChannel(Requester):
    """A virtual channel of a link, number `number` of its network, and the buffer at its end.

    `following` is the channel behind it in turn, of those of its network.

    The sender's end: from `free_at` on no packet has the channel. `pointer` is the input behind
    that of its last head, `nominee` the channel whose head requests it in the present cycle, the
    first in turn so far; `waiting` is what waits for a credit.

    The buffer, channel `index` of input `port`: `count` slots from `oldest` on hold flits, and
    `next_slot` follows them. `worms` are, by slot, the packets behind the first one whose head is
    there. An output that ejects has no buffer: its depth is 0.

    The first packet in the buffer is `worm`, with `left` flits to come or there. It is routed for
    `routing` cycles, gets the channel `held` of `network`, and sends its flits; then the next one
    begins.
    """

    following: "VirtualChannel"
    network: VirtualNetwork
    port: InputPort

    def __init__(self, number: int) -> None:
        super().__init__(None)
        self.number = number
        self.free_at = self.pointer = 0
        self.nominee: Any = None
        self.waiting: Requester | None = None
        self.index = self.depth = self._credit_cycles = 0
        self._slots = IntArray()
        self._worms: list[Worm | None] = []
        self.oldest = self.next_slot = self.count = 0
        self.is_asleep = False
        self.worm: Worm | None = None
        self.left = self.routing = 0
        self.held: VirtualChannel | None = None
        self.last_network: VirtualNetwork | None = None
        self.last_held: Any = None

    def connect(
        self, router: Arbiter, port: InputPort, index: int, depth: int, credit_cycles: int
    ) -> None:
        """Give it a buffer of `depth` flits at a router, channel `index` of its input `port`."""
        self.request_from(router)
        self.port, self.index, self.depth = port, index, depth
        self._credit_cycles = credit_cycles
        self._worms = [None] * depth
        for _ in range(depth):
            self._slots.append(0)

    def credit(self) -> int:
        """The cycle from which the oldest credit can be used, or `DORMANT`."""
        return self._slots.values[self.next_slot] if self.count < self.depth else cycles.DORMANT

    def give_to(self, channel: "VirtualChannel") -> None:
        """Give the channel to the first packet of another one, until its tail has passed."""
        port = channel.port
        self.free_at = HELD
        self.pointer, port.next_head = port.index + 1, channel.index + 1
        channel.held = channel.last_held = self
        channel.last_network = channel.network

    def place(self) -> int:
        """The place of the buffer among those of all inputs of its router."""
        return self.port.index << TURN_BITS | self.index

    def turn_at(self, wanted: "VirtualChannel") -> int:
        """The distance in turn behind the input that got `wanted` last, then its last head."""
        port = self.port
        of_port = (port.index - wanted.pointer) & TURNS
        return of_port << TURN_BITS | ((self.index - port.next_head) & TURNS)

    def turn_at_input(self) -> int:
        """The distance in turn behind the output served last, then behind the channel for it."""
        entrance, port = self.port, self.network.port
        of_port = (port.index - entrance.pointer) & TURNS
        last = entrance.next_channels.values[port.number]
        return of_port << TURN_BITS | ((self.index - last) & TURNS)

    def turn_at_output(self) -> int:
        """The distance in turn behind the input that its output served last."""
        return (self.port.index - self.network.port.pointer) & TURNS

    def head(self, worm: Worm, cycle: int) -> None:
        """The head of a packet can be used from `cycle` on."""
        worm.hop += 1
        if self.worm is None:
            self.worm = worm
            self._enter(cycle)
            self.begin(cycle)
        else:
            self._worms[self.next_slot] = worm
            self._enter(cycle)

    def body(self, cycle: int) -> None:
        """A further flit of the last packet can be used from `cycle` on."""
        self._enter(cycle)
        if self.is_asleep:
            self.is_asleep = False
            self.wake(cycle)

    def _enter(self, cycle: int) -> None:
        """A flit takes the next slot, and its credit."""
        self._slots.values[self.next_slot] = cycle
        self.count += 1
        self.next_slot += 1
        if self.next_slot == self.depth:
            self.next_slot = 0

    def take(self, now: int) -> int:
        """The oldest flit leaves, and its credit returns; the cycle from which it could be used."""
        # The slot is free at once, but the sender may use it only when its credit has come back.
        arrived, usable = self._slots.values[self.oldest], now + self._credit_cycles
        self._slots.values[self.oldest] = usable
        self.count -= 1
        self.oldest += 1
        if self.oldest == self.depth:
            self.oldest = 0
        waiting = self.waiting
        if waiting is not None:
            self.waiting = None
            waiting.wake(usable)
        return arrived

    def begin(self, cycle: int) -> None:
        """Route the first packet in `cycle`."""
        worm = self.worm
        assert worm is not None, "a packet is in the buffer"
        path = worm.path
        self.left, self.network = worm.flits, path.networks[worm.hop]
        self.routing = path.routing.values[worm.hop]
        # Only a head is routed; the other flits follow it on its channel (wormhole switching).
        self.queue.add(self, cycle + self.routing)

    def end(self, now: int) -> None:
        """The last flit of the first packet has won the switch in cycle `now`."""
        self.held = self.worm = None
        if self.count:
            self.worm, self._worms[self.oldest] = self._worms[self.oldest], None
            ready = self._slots.values[self.oldest]
            self.begin(ready if ready > now else now + 1)

    def earliest(self, cycle: int) -> int:
        """The first cycle from `cycle` on in which it can request the switch, or `DORMANT`."""
        held = self.held
        assert held is not None, "it requests the switch with a channel"
        if not self.count:
            self.is_asleep = True
            return cycles.DORMANT
        # Comparisons, since calls of max() cost a tenth of all hops per second.
        ready, free_at = self._slots.values[self.oldest], self.network.port.free_at
        if ready > cycle:  # noqa: PLR1730
            cycle = ready
        if free_at > cycle:  # noqa: PLR1730
            cycle = free_at
        # A flit leaves only when the next buffer has a slot for it, so no flit is ever dropped. An
        # exit has no buffer: the endpoint takes what arrives.
        if held.depth:
            credit = held.credit()
            if credit == cycles.DORMANT:
                held.waiting = self
                return cycles.DORMANT
            if credit > cycle:  # noqa: PLR1730
                cycle = credit
        return cycle
