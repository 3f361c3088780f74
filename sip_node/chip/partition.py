"""Which LP holds which SIP, and the channels that messages between SIPs take: what follows from the routes alone."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runtime.model.routing import SipFabric
from sip_node.chip.ucie_ports import lookahead_ps
from sip_node.pdes.sync import ForwardingPath


class Egress(NamedTuple):
    """Where messages from one SIP to another leave the LP of the first.

    By the channel to `peer`, at least `delay_ps` after the first SIP has sent them, with `remaining_hops` further channels ahead.
    """

    peer: int
    delay_ps: int
    remaining_hops: int


class Partition:
    """The SIPs of every LP. A link between SIPs of one LP only takes time, one between LPs is part of a channel."""

    def __init__(
        self, sips_of_lp: Sequence[Sequence[int]], fabric: SipFabric, noc_overhead_ns: float
    ) -> None:
        self.sips_of_lp = sips_of_lp
        self.lp_of = {sip: lp for lp, sips in enumerate(sips_of_lp) for sip in sips}
        self._fabric = fabric
        self._link_ps = {
            (link.source, link.target): lookahead_ps(noc_overhead_ns, link.latency_ps)
            for link in fabric.links
        }
        self._exits: dict[tuple[int, int], Egress | None] = {}

    def channels_out(self, lp: int) -> dict[int, int]:
        """Peer LP -> lookahead in ps: the least of the links that share the channel."""
        return _least(
            (self.lp_of[b], ps)
            for (a, b), ps in self._link_ps.items()
            if self.lp_of[a] == lp != self.lp_of[b]
        )

    def channels_in(self, lp: int) -> dict[int, int]:
        """The same for the channels that lead here."""
        return _least(
            (self.lp_of[a], ps)
            for (a, b), ps in self._link_ps.items()
            if self.lp_of[b] == lp != self.lp_of[a]
        )

    def exits(self, sip: int) -> dict[int, Egress]:
        """Target SIP -> how messages from `sip` to it leave the LP, for all that do."""
        ways = {target: self._exit(sip, target) for target in range(self._fabric.sips)}
        return {target: way for target, way in ways.items() if way is not None}

    def transits(self, lp: int) -> dict[int, tuple[tuple[ForwardingPath, ...], ...]]:
        """Peer LP -> for n = 0, 1, ...: how messages with n or more channels ahead get to its channel from other LPs.

        It has an entry for every n that a message on the channel can have, wherever it starts.
        """
        exits = {sip: self.exits(sip) for sip in self.sips_of_lp[lp]}
        every = [way for ways in exits.values() for way in ways.values()]
        depth = {
            peer: 1 + max(way.remaining_hops for way in every if way.peer == peer)
            for peer in self.channels_out(lp)
        }
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for before, sip in self._link_ps:
            if self.lp_of[before] != lp == self.lp_of[sip]:
                for target, way in exits[sip].items():
                    if target != before and self._fabric.next_hop(before, target) == sip:
                        for remaining_hops in range(way.remaining_hops + 1):
                            found.setdefault((way.peer, remaining_hops), []).append(
                                (self.lp_of[before], way.delay_ps)
                            )
        return {
            peer: tuple(_transits(found.get((peer, n), [])) for n in range(depth[peer]))
            for peer in depth
        }

    def _exit(self, sip: int, target: int) -> Egress | None:
        if (sip, target) not in self._exits:
            self._exits[sip, target] = None if sip == target else self._way_out(sip, target)
        return self._exits[sip, target]

    def _way_out(self, sip: int, target: int) -> Egress | None:
        beside = self._fabric.next_hop(sip, target)
        onward = self._exit(beside, target)
        if self.lp_of[beside] != self.lp_of[sip]:
            return Egress(self.lp_of[beside], 0, 0 if onward is None else 1 + onward.remaining_hops)
        return (
            None
            if onward is None
            else onward._replace(delay_ps=self._link_ps[sip, beside] + onward.delay_ps)
        )


def _transits(ways: Iterable[tuple[int, int]]) -> tuple[ForwardingPath, ...]:
    return tuple(
        ForwardingPath(source, delay_ps) for source, delay_ps in sorted(_least(ways).items())
    )


def _least(found: Iterable[tuple[int, int]]) -> dict[int, int]:
    least: dict[int, int] = {}
    for peer, ps in found:
        least[peer] = min(ps, least.get(peer, ps))
    return least
