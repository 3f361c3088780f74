"""The two ends of the virtual channels of a link: buffers at its input, credits at its output.

    output of a router or source           link           input of the next router
    OutputPort                       flits ----->         InputPort
      VirtualNetwork (class, layer)
        OutputVc: credits                                   InputVc: flits, packet after packet
                                     <----- credits

Flits are no objects: a buffer holds the cycles from which its flits can be used, and the packets
that they belong to. An output holds the cycles from which its credits can be used.
"""

from collections import deque
from collections.abc import Callable
from typing import Protocol

from runtime.core.simtime import NEVER_PS
from sip_node.chip.fabric.cycle_queue import Arbiter, CycleQueue
from sip_node.chip.fabric.noc_clock import Pipeline
from sip_node.chip.fabric.worm import Worm
from sip_node.chip.time_bins import TimeBins

HELD = NEVER_PS
"""`OutputVc.free_at` while a packet has the channel."""
TURNS = 1 << 30
"""More than the indices of ports and channels: differences of two modulo this are cyclic."""
DORMANT = -1
"""Instead of a cycle: not before a flit, a credit or a channel arrives."""


class OutputPort:
    """An output and the link behind it, with the counters of a link.

    A flit occupies the link for `flit_cycles`, and can be used at its end `delay` cycles after it
    has won the switch. `pointer` is the input behind that of its last flit. `units` are the
    bytes of a flit and the period of the clock in ps. In a run with records, `bins` are its load
    over time and `packets` the number of those that it has carried.
    """

    __slots__ = (
        "_flit_bytes",
        "_period_ps",
        "bins",
        "delay",
        "flit_cycles",
        "flits",
        "free_at",
        "index",
        "name",
        "nbytes",
        "packets",
        "pointer",
        "queued_cycles",
    )

    def __init__(
        self, name: str, index: int, flit_cycles: int, delay: int, units: tuple[int, int]
    ) -> None:
        self.name, self.index, self.flit_cycles, self.delay = name, index, flit_cycles, delay
        self._flit_bytes, self._period_ps = units
        self.free_at = self.pointer = 0
        self.flits = self.nbytes = self.queued_cycles = self.packets = 0
        self.bins: TimeBins | None = None

    def serialisation_ps(self, nbytes: int) -> int:
        """The time that the flits of one packet of `nbytes` take."""
        return -(-nbytes // self._flit_bytes) * self.flit_cycles * self._period_ps

    def record(self, worm: Worm, hop: int, now: int, waited: int | None) -> None:
        """A flit of a packet leaves in cycle `now`; of a head, after it has `waited` for cycles."""
        period_ps, packet = self._period_ps, worm.packet
        queued_ps = 0 if waited is None else waited * period_ps
        if self.bins is not None:
            self.bins.add(
                now * period_ps,
                (now + self.flit_cycles) * period_ps,
                0 if waited is None else packet.size,
                queued_ps,
                waited is not None,
            )
        if waited is None or packet.train is None:
            return
        self.packets += 1
        others_ps = packet.train.at_router(hop, self.packets, queued_ps)
        if others_ps:
            packet.queued(others_ps, self.name)

    @property
    def busy_ps(self) -> int:
        """The time for which the link has carried flits."""
        return self.flits * self.flit_cycles * self._period_ps

    @property
    def queued_ps(self) -> int:
        """The time for which heads of packets have waited for it."""
        return self.queued_cycles * self._period_ps


class InputPort:
    """An input of a router: `pointer` is the output behind that of its last flit.

    `next_vc` is the channel behind that of the last flit, by output; `next_head` the channel behind
    that of the last head that got a channel.
    """

    __slots__ = ("index", "next_head", "next_vc", "pointer")

    def __init__(self, index: int) -> None:
        self.index, self.pointer, self.next_head = index, 0, 0
        self.next_vc: dict[OutputPort, int] = {}


class Waiting(Protocol):
    """A channel without a request before a credit arrives."""

    def wake(self, cycle: int) -> None:
        """What it waits for is usable in `cycle`."""
        ...


class OutputVc:
    """The sender's end of a virtual channel: `credits` are the cycles from which they are usable.

    `target` is the buffer at the other end; None at an output that ejects, where none is needed.
    `number` is its number in its network, `pointer` the input behind that of its last head.
    """

    __slots__ = ("credits", "free_at", "number", "pointer", "target", "waiting")

    def __init__(self, number: int, target: "InputVc | None", depth: int) -> None:
        self.number, self.target, self.credits = number, target, deque([0] * depth)
        self.free_at = self.pointer = 0
        self.waiting: Waiting | None = None

    def turn(self, channel: "InputVc") -> tuple[int, int]:
        """How long after the input that got it last, and after the last head of its input."""
        entrance = channel.port
        return (
            (entrance.index - self.pointer) % TURNS,
            (channel.index - entrance.next_head) % TURNS,
        )


class VirtualNetwork:
    """The channels of one message class and layer at an output; packets never leave their class.

    `waiting` are the inputs whose packets need a channel. `space`, where the receiver has a limit,
    is the number of flits for which it has room: a packet takes its space with its channel.
    """

    __slots__ = (
        "_capacity",
        "_queue",
        "_short_of_space",
        "eject",
        "index",
        "port",
        "space",
        "vcs",
        "waiting",
    )

    def __init__(
        self, queue: CycleQueue, port: OutputPort, index: int, vcs: list[OutputVc]
    ) -> None:
        self._queue = queue
        self.port, self.index, self.vcs = port, index, vcs
        self.waiting: list[InputVc] = []
        self.space: int | None = None
        self._capacity = 0
        self._short_of_space: deque[InputVc] = deque()
        self.eject: Callable[[Worm, int], None] | None = None

    def limit(self, flits: int) -> None:
        """The receiver has room for `flits`; a longer packet enters when all of it is free."""
        if self.space is None:
            self.space = self._capacity = flits

    def admits(self, channel: "InputVc", now: int) -> bool:
        """Take space for the packet of `channel`, if there is enough and no earlier one waits."""
        assert self.space is not None
        worm = channel.packets[0][0]
        path, queue = worm.path, self._short_of_space
        if worm.number != path.admitted:
            # It waits for its predecessor beside the buffer: in it, both could wait for each other.
            path.early[worm.number] = worm.flits
            return True
        # In turn, or else a long packet would wait for as long as short ones arrive.
        fits = self.space >= min(worm.flits, self._capacity)
        if not fits or (queue and queue[0] is not channel):
            if channel not in queue:
                queue.append(channel)
            return False
        self.space -= worm.flits
        path.admitted += 1
        while path.admitted in path.early:
            self.space -= path.early.pop(path.admitted)
            path.admitted += 1
        if queue:
            # The next one may have space as well.
            queue.popleft()
            self.retry(now + 1)
        return True

    def give_back(self, flits: int, cycle: int) -> None:
        """The receiver has room for `flits` more from `cycle` on."""
        assert self.space is not None
        self.space += flits
        self.retry(cycle)

    def retry(self, cycle: int) -> None:
        """All that wait repeat their requests in `cycle`."""
        waiting, self.waiting = self.waiting, []
        for channel in waiting:
            self._queue.add(channel, cycle)


class InputVc:
    """The receiver's end of a virtual channel: the buffer of a router.

    `ready` has the cycle from which each flit can be used, `packets` the packets that they belong
    to and the index of this router's output in their paths. The first of them is routed, gets an
    output channel `vc` of `network`, and sends its flits; then the next one begins.
    """

    __slots__ = (
        "_pipeline",
        "_queue",
        "arbiter",
        "asleep",
        "credit_cycles",
        "feeder",
        "index",
        "last_network",
        "last_vc",
        "left",
        "network",
        "packets",
        "port",
        "ready",
        "vc",
    )

    def __init__(
        self,
        queue: CycleQueue,
        arbiter: Arbiter,
        port: InputPort,
        index: int,
        pipeline: Pipeline,
        credit_cycles: int,
    ) -> None:
        self._queue, self.arbiter, self._pipeline = queue, arbiter, pipeline
        self.port, self.index = port, index
        self.credit_cycles = credit_cycles
        self.ready: deque[int] = deque()
        self.packets: deque[tuple[Worm, int]] = deque()
        self.left = 0
        self.network: VirtualNetwork
        self.vc: OutputVc | None = None
        self.feeder: OutputVc
        self.last_network: VirtualNetwork | None = None
        self.last_vc = 0
        self.asleep = False

    def head(self, worm: Worm, hop: int, cycle: int) -> None:
        """The head of a packet can be used from `cycle` on."""
        self.ready.append(cycle)
        self.packets.append((worm, hop))
        if len(self.packets) == 1:
            self.begin(cycle)

    def body(self, cycle: int) -> None:
        """A further flit of the last packet can be used from `cycle` on."""
        self.ready.append(cycle)
        if self.asleep:
            self.asleep = False
            self.wake(cycle)

    def begin(self, cycle: int) -> None:
        """Route the first packet in `cycle`."""
        worm, hop = self.packets[0]
        self.left = worm.flits
        self.network = worm.networks[hop]
        self._queue.add(self, cycle + self._pipeline.route)

    def allocated(self, vc: OutputVc, now: int) -> bool:
        """The first packet has got a channel; whether it requests the switch in the same cycle."""
        self.vc = vc
        cycle = self.earliest(now + self._pipeline.allocate)
        if cycle > now:
            self._queue.add(self, cycle)
        return cycle == now

    def earliest(self, cycle: int) -> int:
        """The first cycle from `cycle` on in which it can request the switch, or `DORMANT`."""
        ready, vc = self.ready, self.vc
        assert vc is not None
        if not ready:
            self.asleep = True
            return DORMANT
        # Comparisons, since calls of max() cost a tenth of all hops per second.
        if ready[0] > cycle:  # noqa: PLR1730
            cycle = ready[0]
        if vc.target is not None:
            if not vc.credits:
                vc.waiting = self
                return DORMANT
            if vc.credits[0] > cycle:  # noqa: PLR1730
                cycle = vc.credits[0]
        free_at = self.network.port.free_at
        return free_at if free_at > cycle else cycle  # noqa: FURB136

    def wake(self, cycle: int) -> None:
        """Request the switch from `cycle` on."""
        cycle = self.earliest(cycle)
        if cycle >= 0:
            self._queue.add(self, cycle)

    def taken(self, now: int) -> int:
        """The first flit leaves the buffer; returns the cycle from which it could be used."""
        feeder, usable = self.feeder, now + self.credit_cycles
        feeder.credits.append(usable)
        waiting = feeder.waiting
        if waiting is not None:
            feeder.waiting = None
            waiting.wake(usable)
        return self.ready.popleft()

    @property
    def least_cycles(self) -> int:
        """The cycles from the arrival of a head to the switch."""
        return self._pipeline.route + self._pipeline.allocate
