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

from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.chip.fabric.noc_clock import Pipeline
from sip_node.chip.fabric.virtual_channels import HELD, TURNS, InputVc, OutputPort, OutputVc


class Router:
    """One router. `requests` are the channels with a request in the present cycle."""

    def __init__(self, queue: CycleQueue, pipeline: Pipeline) -> None:
        self._queue, self.pipeline = queue, pipeline
        self.requests: list[InputVc] = []

    def arbitrate(self, now: int) -> None:
        """Allocate channels, then the switch."""
        requests, self.requests = self.requests, []
        if len(requests) == 1:
            channel = requests[0]
            # The common case: no competition.
            if channel.vc is None:
                vc = self._wanted(channel, now)
                if vc is not None and self._give(vc, channel, now):
                    self._traverse(channel, now)
            elif channel.network.port.free_at > now:
                self._queue.add(channel, channel.network.port.free_at)
            else:
                self._traverse(channel, now)
            return
        heads = [channel for channel in requests if channel.vc is None]
        if heads:
            requests = [channel for channel in requests if channel.vc is not None]
            requests += self._with_channels(heads, now)
        for channel in self._winners(requests, now):
            self._traverse(channel, now)

    def _with_channels(self, heads: list[InputVc], now: int) -> list[InputVc]:
        """Give channels to heads: those that request the switch in the same cycle."""
        # In a fixed order, for it decides who takes the space of a receiver first.
        heads.sort(key=_place)
        nominees: dict[OutputVc, InputVc] = {}
        for channel in heads:
            vc = self._wanted(channel, now)
            if vc is None:
                continue
            rival = nominees.setdefault(vc, channel)
            if rival is not channel:
                lost = channel
                if vc.turn(channel) < vc.turn(rival):
                    nominees[vc], lost = channel, rival
                self._queue.add(lost, now + 1)
        return [channel for vc, channel in nominees.items() if self._give(vc, channel, now)]

    def _wanted(self, channel: InputVc, now: int) -> OutputVc | None:
        """The channel for which a head requests; without a free one, it waits."""
        network = channel.network
        vcs = network.vcs
        count = len(vcs)
        first = channel.last_vc + 1 if channel.last_network is network else 0
        for turn in range(first, first + count):
            vc = vcs[turn % count]
            if vc.free_at <= now:
                return vc
        network.waiting.append(channel)
        return None

    def _give(self, vc: OutputVc, channel: InputVc, now: int) -> bool:
        """Give a head a free channel; whether it requests the switch in the same cycle."""
        network = channel.network
        if network.space is not None and not network.admits(channel, now):
            network.waiting.append(channel)
            return False
        vc.free_at = HELD
        vc.pointer, channel.port.next_head = channel.port.index + 1, channel.index + 1
        channel.last_network, channel.last_vc = network, vc.number
        return channel.allocated(vc, now)

    def _winners(self, requests: list[InputVc], now: int) -> list[InputVc]:
        """Allocate the switch; the others request it again."""
        nominees: dict[int, InputVc] = {}
        lost: list[InputVc] = []
        for channel in requests:
            port, entrance = channel.network.port, channel.port.index
            if port.free_at > now:
                self._queue.add(channel, port.free_at)
                continue
            rival = nominees.setdefault(entrance, channel)
            if rival is not channel:
                worse = channel
                if _turn(channel) < _turn(rival):
                    nominees[entrance], worse = channel, rival
                lost.append(worse)
        granted: dict[OutputPort, InputVc] = {}
        for channel in nominees.values():
            port = channel.network.port
            rival = granted.setdefault(port, channel)
            if rival is not channel:
                worse = channel
                if _turn_of_input(channel) < _turn_of_input(rival):
                    granted[port], worse = channel, rival
                lost.append(worse)
        for channel in lost:
            # The link of an output that no input has requested stays free.
            self._queue.add(channel, now + 1)
        return list(granted.values())

    def _traverse(self, channel: InputVc, now: int) -> None:
        """A flit of `channel` has won the switch."""
        network, vc = channel.network, channel.vc
        assert vc is not None
        port, entrance = network.port, channel.port
        entrance.next_vc[port] = channel.index + 1
        entrance.pointer = port.index + 1
        port.pointer = entrance.index + 1
        port.free_at = now + port.flit_cycles
        port.flits += 1
        worm, hop = channel.packets[0]
        arrived = channel.taken(now)
        if worm.packet.train is not None:
            is_head = channel.left == worm.flits
            port.record(worm, hop, now, now - arrived - channel.least_cycles if is_head else None)
        target = vc.target
        if target is not None:
            vc.credits.popleft()
        if channel.left == worm.flits:
            port.nbytes += worm.packet.size
            port.queued_cycles += now - arrived - channel.least_cycles
            if target is not None:
                target.head(worm, hop + 1, now + port.delay)
        elif target is not None:
            target.body(now + port.delay)
        channel.left -= 1
        if channel.left:
            channel.wake(now + 1)
            return
        if target is None:
            assert network.eject is not None
            network.eject(worm, now + port.delay)
        vc.free_at = now + 1
        if network.waiting:
            network.retry(now + 1)
        channel.vc = None
        channel.packets.popleft()
        if channel.packets:
            channel.begin(max(now + 1, channel.ready[0]))


def _place(channel: InputVc) -> tuple[int, int]:
    """The place of a channel among those of all inputs of its router."""
    return channel.port.index, channel.index


def _turn(channel: InputVc) -> tuple[int, int]:
    """How long after the output that its input served last, and after the channel for it."""
    entrance, port = channel.port, channel.network.port
    return (
        (port.index - entrance.pointer) % TURNS,
        (channel.index - entrance.next_vc.get(port, 0)) % TURNS,
    )


def _turn_of_input(channel: InputVc) -> int:
    """How long after the input that its output served last."""
    return (channel.port.index - channel.network.port.pointer) % TURNS
