"""The partition of a run: which LP holds which SIP, and the channels which routes between SIPs use.

Everything here follows from the routes alone. A link between SIPs of one LP only takes time; a link
between LPs is part of a channel.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runtime.core.simtime import ps_from_ns
from runtime.model.topology import Topology
from sip_node.chip.context import ChipSpec
from sip_node.pdes.promises import ForwardingPath
from sip_node.pdes.silence import tree_neighbours


class Egress(NamedTuple):
    """The exit of messages from one SIP to another out of its LP: the channel to `peer`.

    They reach it at least `delay_ps` after the first SIP has sent them, and have `remaining_hops`.
    """

    peer: int
    delay_ps: int
    remaining_hops: int


class Partition:
    """The SIPs of every LP, and what follows for channels, egresses and forwarding paths."""

    def __init__(self, sips_of_lp: Sequence[Sequence[int]], spec: ChipSpec) -> None:
        self.sips_of_lp = sips_of_lp
        self.lp_of = {sip: lp for lp, sips in enumerate(sips_of_lp) for sip in sips}
        self._fabric = spec.sips
        # The least time from the event in which a packet leaves one IO NoC to the event in which it
        # enters the next one: this is the lookahead of the protocol.
        noc_ps = _noc_ps(spec.topology)
        self._link_ps = {
            (link.source, link.target): link.latency_ps + noc_ps for link in spec.sips.links
        }
        self._egress: dict[tuple[int, int], Egress | None] = {}

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

    def peers(self, lp: int, hosts: Sequence[int]) -> tuple[int, ...]:
        """The LPs with which an LP has anything to exchange, in ascending order.

        Those with a channel from it or to it, and its neighbours in the tree of silence reports.
        `hosts` has the host of every LP.
        """
        channels = {*self.channels_in(lp), *self.channels_out(lp)}
        return tuple(sorted(channels | tree_neighbours(lp, hosts)))

    def egresses(self, sip: int) -> dict[int, Egress]:
        """Target SIP -> where messages from `sip` to it leave the LP, for all that do."""
        egresses = {target: self._egress_to(sip, target) for target in range(self._fabric.sips)}
        return {target: egress for target, egress in egresses.items() if egress is not None}

    def forwarding_paths(self, lp: int) -> dict[int, tuple[tuple[ForwardingPath, ...], ...]]:
        """Peer LP -> for n = 0, 1, ...: the paths from other LPs to its channel.

        Those of messages with n or more remaining hops on the channel. There is an entry for every
        n that a message on the channel can have, wherever it starts.
        """
        egresses = {sip: self.egresses(sip) for sip in self.sips_of_lp[lp]}
        every = [egress for of_sip in egresses.values() for egress in of_sip.values()]
        # A promise for each number of remaining hops that occurs on the channel.
        depth = {
            peer: 1 + max(egress.remaining_hops for egress in every if egress.peer == peer)
            for peer in self.channels_out(lp)
        }
        sources: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for before, sip in self._link_ps:
            if self.lp_of[before] == lp or self.lp_of[sip] != lp:
                continue
            for target, egress in egresses[sip].items():
                # Only routes which really enter this LP by the link from `before` count.
                if target != before and self._fabric.next_hop(before, target) == sip:
                    for n in range(egress.remaining_hops + 1):
                        sources.setdefault((egress.peer, n), []).append(
                            (self.lp_of[before], egress.delay_ps)
                        )
        return {
            peer: tuple(_paths(sources.get((peer, n), [])) for n in range(depth[peer]))
            for peer in depth
        }

    def _egress_to(self, sip: int, target: int) -> Egress | None:
        if (sip, target) not in self._egress:
            self._egress[sip, target] = None if sip == target else self._along(sip, target)
        return self._egress[sip, target]

    def _along(self, sip: int, target: int) -> Egress | None:
        """The egress of the route, hop by hop; None if the route never leaves the LP."""
        neighbour = self._fabric.next_hop(sip, target)
        onward = self._egress_to(neighbour, target)
        if self.lp_of[neighbour] != self.lp_of[sip]:
            # A promise counts channels, not links: hops between SIPs of one LP cross no channel.
            further = 0 if onward is None else 1 + onward.remaining_hops
            # The delay counts only up to the channel: its lookahead has the time on it.
            return Egress(self.lp_of[neighbour], 0, further)
        if onward is None:
            return None
        return onward._replace(delay_ps=self._link_ps[sip, neighbour] + onward.delay_ps)


def _noc_ps(topology: Topology) -> int:
    return ps_from_ns(topology.sip.io_chiplet.noc.overhead_ns)


def _paths(sources: Iterable[tuple[int, int]]) -> tuple[ForwardingPath, ...]:
    return tuple(
        ForwardingPath(source, delay_ps) for source, delay_ps in sorted(_least(sources).items())
    )


def _least(delays: Iterable[tuple[int, int]]) -> dict[int, int]:
    least: dict[int, int] = {}
    for peer, ps in delays:
        least[peer] = min(ps, least.get(peer, ps))
    return least
