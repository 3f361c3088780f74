"""The chips of one LP as the loop sees them: one engine, an inbox per SIP, and what they know about their next message."""

from collections.abc import Iterable, Mapping
from itertools import accumulate

from runtime.core.simtime import NEVER_PS
from runtime.wire.messages import Message
from sip_node.chip.chip import Chip, ChipSpec
from sip_node.chip.fabric.packet import bound_for
from sip_node.chip.op_log import OpLog
from sip_node.chip.partition import Egress, Partition
from sip_node.pdes.channel import later_ps
from sip_node.pdes.engine import Engine
from sip_node.pdes.sync import Sync


class ChipModel:
    """The `Model` of an LP with chips on it."""

    def __init__(
        self, lp: int, partition: Partition, sync: Sync, plan: ChipSpec, logs: Mapping[int, OpLog]
    ) -> None:
        self.engine = Engine()
        self._sync = sync
        self._exits = {sip: partition.exits(sip) for sip in partition.sips_of_lp[lp]}
        self._shortest = {sip: _shortest(exits.values()) for sip, exits in self._exits.items()}
        self._depths = {peer: len(ways) for peer, ways in partition.transits(lp).items()}
        self.chips = {
            sip: Chip(plan, sip, self.engine, logs[sip], self._post)
            for sip in partition.sips_of_lp[lp]
        }

    def next_ps(self) -> int:
        """The time of the earliest event."""
        return self.engine.next_ps()

    def run_before(self, bound_ps: int) -> int:
        """Execute every event before `bound_ps`."""
        return self.engine.run_before(bound_ps)

    def deliver(self, message: Message) -> None:
        """Put a message into the inbox of its SIP."""
        self.chips[message.target].deliver(message)

    def earliest_send_ps(self, base_ps: int) -> dict[int, tuple[int, ...]]:
        """Per peer LP and by remaining_hops, the earliest that anything of ours, or already here to be sent on, leaves for it."""
        sends_ps = {peer: [NEVER_PS] * depth for peer, depth in self._depths.items()}

        def may_leave(way: Egress, send_ps: int) -> None:
            bounds = sends_ps[way.peer]
            bounds[way.remaining_hops] = min(
                bounds[way.remaining_hops], later_ps(send_ps, way.delay_ps)
            )

        for sip, exits in self._exits.items():
            launch_ps, known_ps = self.chips[sip].send_bounds.earliest_send_ps(base_ps)
            for way in self._shortest[sip]:
                may_leave(way, launch_ps)
            for target, send_ps in known_ps.items():
                if target in exits:
                    may_leave(exits[target], send_ps)
        # A message with more channels ahead counts for every lesser number, too.
        return {
            peer: tuple(accumulate(reversed(bounds), min))[::-1]
            for peer, bounds in sends_ps.items()
        }

    def _post(self, message: Message) -> None:
        if message.target in self.chips:
            self.deliver(message)
        else:
            way = self._exits[message.source][bound_for(message)]
            self._sync.post(way.peer, message, way.remaining_hops)


def _shortest(exits: Iterable[Egress]) -> tuple[Egress, ...]:
    """Of the exits to the same peer with the same remaining_hops, the one with the least delay."""
    return tuple(
        {(way.peer, way.remaining_hops): way for way in sorted(exits, reverse=True)}.values()
    )
