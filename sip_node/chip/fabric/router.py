"""An input-queued router with virtual channels and credits (Dally & Towles, chapters 16 to 18).

    head arrives   route   allocate a VC   allocate the switch   traverse   wire -> next router

An input channel has one packet at a time in this pipeline: the next one is routed in the cycle
after the tail of the first has won the switch. Flits of different packets share a link in turn.

- *Allocation of channels.* Heads have their turns from the input on that is behind the last one to
  get a channel of their network, and so have the channels of an input: in a fixed order long
  packets of one would starve the others. Each takes the first free channel behind that of the
  packet before it in its input, if both have the same output; else the first free one. A channel is
  free in the cycle after the tail of its packet has won the switch.
- *Allocation of the switch*, separable, output first, one iteration (iSLIP; McKeown 1999): of each
  input and output one channel is the candidate; each output grants one input, each input accepts
  one output, all in turn. Pointers move on acceptance only, and a grant that is not accepted is
  lost for the cycle.

There are no random numbers: turns are pointers.
"""

from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.chip.fabric.noc_clock import Pipeline
from sip_node.chip.fabric.virtual_channels import HELD, InputVc, OutputPort

_TURNS = 1 << 30
"""More than the indices of ports and channels: differences of two modulo this are cyclic."""


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
                if self._allocate(channel, now):
                    self._traverse(channel, now)
            elif channel.network.port.free_at > now:
                self._queue.add(channel, channel.network.port.free_at)
            else:
                self._traverse(channel, now)
            return
        heads = [channel for channel in requests if channel.vc is None]
        if heads:
            heads.sort(key=_turn_of_head)
            requests = [channel for channel in requests if channel.vc is not None]
            requests += [channel for channel in heads if self._allocate(channel, now)]
        for channel in self._winners(requests, now):
            self._traverse(channel, now)

    def _allocate(self, channel: InputVc, now: int) -> bool:
        """Give a head a channel; whether it requests the switch in the same cycle."""
        network = channel.network
        vcs = network.vcs
        count = len(vcs)
        first = channel.last_vc + 1 if channel.last_network is network else 0
        for turn in range(first, first + count):
            vc = vcs[turn % count]
            if vc.free_at <= now:
                break
        else:
            network.waiting.append(channel)
            return False
        if network.space is not None and not network.admits(channel, now):
            network.waiting.append(channel)
            return False
        vc.free_at = HELD
        network.pointer = channel.port.index + 1
        channel.port.next_head[network] = channel.index + 1
        channel.last_network, channel.last_vc = network, turn % count
        return channel.allocated(vc, now)

    def _winners(self, requests: list[InputVc], now: int) -> list[InputVc]:
        by_output: dict[OutputPort, list[InputVc]] = {}
        for channel in requests:
            port = channel.network.port
            if port.free_at > now:
                self._queue.add(channel, port.free_at)
            elif port in by_output:
                by_output[port].append(channel)
            else:
                by_output[port] = [channel]
        accepted: dict[int, InputVc] = {}
        lost: list[InputVc] = []
        for port, channels in by_output.items():
            granted = channels[0]
            if len(channels) > 1:
                granted = min(channels, key=_turn)
                lost += [channel for channel in channels if channel is not granted]
            rival = accepted.setdefault(granted.port.index, granted)
            if rival is not granted:
                first = granted.port.pointer
                if (port.index - first) % _TURNS < (rival.network.port.index - first) % _TURNS:
                    accepted[granted.port.index], granted = granted, rival
                lost.append(granted)
        for channel in lost:
            # The link of an output whose grant was not accepted stays free.
            self._queue.add(channel, now + 1)
        return list(accepted.values())

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


def _turn_of_head(channel: InputVc) -> tuple[int, int]:
    """How long after the input that got a channel of its network last, and after its last head."""
    network, entrance = channel.network, channel.port
    return (
        (entrance.index - network.pointer) % _TURNS,
        (channel.index - entrance.next_head.get(network, 0)) % _TURNS,
    )


def _turn(channel: InputVc) -> tuple[int, int]:
    """How long after the input that its output served last, and after the channel of its input."""
    entrance, port = channel.port, channel.network.port
    return (
        (entrance.index - port.pointer) % _TURNS,
        (channel.index - entrance.next_vc.get(port, 0)) % _TURNS,
    )
