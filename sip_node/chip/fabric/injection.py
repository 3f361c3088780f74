"""The source of a link into the routers: the network interface of a component.

Packets wait without a limit, in one queue for each virtual network. The link takes one flit at a
time, of the queues in turn. A packet enters the next virtual channel that has a credit.
"""

from collections import deque
from collections.abc import Callable

from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.chip.fabric.noc_clock import NocClock
from sip_node.chip.fabric.virtual_channels import (
    DORMANT,
    OutputPort,
    OutputVc,
    VirtualNetwork,
)
from sip_node.chip.fabric.worm import Worm

_TURNS = 1 << 30


class Injection:
    """The packets of one virtual network that wait at a source, the first one partly sent."""

    __slots__ = ("_clock", "_last_vc", "_queue", "arbiter", "left", "network", "vc", "worms")

    def __init__(
        self, queue: CycleQueue, arbiter: "Injector", network: VirtualNetwork, clock: NocClock
    ) -> None:
        self._queue, self.arbiter, self.network, self._clock = queue, arbiter, network, clock
        self.worms: deque[Worm] = deque()
        self.left = 0
        self.vc: OutputVc | None = None
        self._last_vc = -1

    def put(self, worm: Worm) -> None:
        """Send a packet after those before it."""
        self.worms.append(worm)
        if len(self.worms) == 1:
            self.left = worm.flits
            self.wake(self._clock.cycle(worm.head_ps))

    def wake(self, cycle: int) -> None:
        """Request the link from `cycle` on."""
        cycle = self.earliest(cycle)
        if cycle >= 0:
            self._queue.add(self, cycle)

    def earliest(self, cycle: int) -> int:
        """The first cycle from `cycle` on in which it can request the link, or `DORMANT`."""
        vcs = self.network.vcs if self.vc is None else [self.vc]
        usable = [vc.credits[0] for vc in vcs if vc.credits]
        for vc in vcs:
            vc.waiting = None if usable else self
        if not usable:
            return DORMANT
        return max(cycle, min(usable), self._available(), self.network.port.free_at)

    def send(self, now: int) -> Worm | None:
        """Send a flit; returns the packet if this was its last one."""
        worm, port = self.worms[0], self.network.port
        vc = self.vc
        if vc is None:
            vc = self.vc = self._next_vc(now)
        assert vc.target is not None
        vc.credits.popleft()
        if worm.packet.train is not None:
            waited = now - self._clock.cycle(worm.head_ps)
            port.record(worm, 0, now, waited if self.left == worm.flits else None)
        if self.left == worm.flits:
            port.nbytes += worm.packet.size
            port.queued_cycles += now - self._clock.cycle(worm.head_ps)
            vc.target.head(worm, 1, now + port.delay)
        else:
            vc.target.body(now + port.delay)
        self.left -= 1
        sent = None
        if not self.left:
            sent, self.vc = self.worms.popleft(), None
            if not self.worms:
                return sent
            self.left = self.worms[0].flits
        self.wake(now + 1)
        return sent

    def _next_vc(self, now: int) -> OutputVc:
        vcs = self.network.vcs
        count = len(vcs)
        for turn in range(self._last_vc + 1, self._last_vc + 1 + count):
            vc = vcs[turn % count]
            if vc.credits and vc.credits[0] <= now:
                self._last_vc = turn % count
                return vc
        raise AssertionError("a queue has requests only when a channel has a credit")

    def _available(self) -> int:
        """The cycle from which the next flit is complete at the source."""
        worm = self.worms[0]
        if worm.tail_ps == worm.head_ps:
            return 0
        begun = worm.flits - self.left + 1
        span_ps = worm.tail_ps - worm.head_ps
        return self._clock.cycle(worm.head_ps + -(-span_ps * begun // worm.flits))


class Injector:
    """The source of the link behind `port`. `left` is called when a packet has left its queue."""

    def __init__(self, queue: CycleQueue, port: OutputPort) -> None:
        self._queue, self.port = queue, port
        self.requests: list[Injection] = []
        self.left: Callable[[Worm, int], None] | None = None

    def arbitrate(self, now: int) -> None:
        """Send a flit of the next queue with a request."""
        requests, self.requests = self.requests, []
        port = self.port
        if port.free_at <= now:
            chosen = requests[0]
            if len(requests) > 1:
                chosen = min(
                    requests, key=lambda each: (each.network.index - port.pointer) % _TURNS
                )
                requests.remove(chosen)
            else:
                requests = []
            port.pointer = chosen.network.index + 1
            port.free_at = now + port.flit_cycles
            port.flits += 1
            worm = chosen.send(now)
            if worm is not None and self.left is not None:
                self.left(worm, now)
        for queue in requests:
            self._queue.add(queue, max(now + 1, port.free_at))
