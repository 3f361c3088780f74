"""The partition of a run: which LP holds which SIP, and the channels which routes between SIPs use.

Everything here follows from the routes alone. A link between SIPs of one LP only takes time; a link
between LPs is part of a channel.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sip_node.chip.context import ChipSpec
from sip_node.pdes.promises import ForwardingPath
from sip_node.pdes.silence import tree_neighbours


class Egress(NamedTuple):
    """The exit of messages from one SIP to another out of its LP: the channel to `peer`.

    They reach it at `last_sip` of the LP, at least `delay_ps` after the first SIP has sent them,
    and have `remaining_hops`.
    """

    peer: int
    delay_ps: int
    remaining_hops: int
    last_sip: int


class Partition:
    """The SIPs of every LP, and what follows for channels, egresses and forwarding paths."""

    def __init__(self, sips_of_lp: Sequence[Sequence[int]], spec: ChipSpec) -> None:
        self.sips_of_lp = sips_of_lp
        self.lp_of = {sip: lp for lp, sips in enumerate(sips_of_lp) for sip in sips}
        self._fabric = spec.sips
        # The least time from the event in which a packet leaves one IO NoC to the event in which it
        # enters the next one: this is the lookahead of the protocol. A link with a time of its own
        # may take longer, and a promise by the least of all holds for it.
        self._hop_ps = spec.sips.least_entry_ps
        self._egresses: dict[int, dict[int, dict[int, Egress]]] = {}

    def channels_out(self, lp: int) -> dict[int, int]:
        """Peer LP -> lookahead in ps."""
        beside = {
            self.lp_of[other]
            for sip in self.sips_of_lp[lp]
            for other in self._fabric.neighbours(sip)
        }
        return dict.fromkeys(sorted(beside - {lp}), self._hop_ps)

    def channels_in(self, lp: int) -> dict[int, int]:
        """The same for the channels that lead here: links come in pairs."""
        return self.channels_out(lp)

    def peers(self, lp: int, hosts: Sequence[int]) -> tuple[int, ...]:
        """The LPs with which an LP has anything to exchange, in ascending order.

        Those with a channel from it or to it, and its neighbours in the tree of silence reports.
        `hosts` has the host of every LP.
        """
        return tuple(sorted(self.channels_out(lp).keys() | tree_neighbours(lp, hosts)))

    def egresses(self, sip: int) -> dict[int, Egress]:
        """Target SIP -> where messages from `sip` to it leave the LP, for all that do."""
        lp = self.lp_of[sip]
        if lp not in self._egresses:
            self._egresses[lp] = self._egresses_of(lp)
        return self._egresses[lp][sip]

    def forwarding_paths(self, lp: int) -> dict[int, tuple[tuple[ForwardingPath, ...], ...]]:
        """Peer LP -> for n = 0, 1, ...: the paths from other LPs to its channel.

        Those of messages with n or more remaining hops on the channel. There is an entry for every
        n that a message on the channel can have, wherever it starts.
        """
        # For each channel and number of remaining hops: the least delay from each source.
        least: dict[int, dict[int, dict[int, int]]] = {peer: {} for peer in self.channels_out(lp)}
        for sip in self.sips_of_lp[lp]:
            for egress in self.egresses(sip).values():
                least[egress.peer].setdefault(egress.remaining_hops, {})
        for before, sip in self._entrances(lp):
            towards = self._fabric.next_hops(before)
            for target, egress in self.egresses(sip).items():
                # Only routes which really enter this LP by the link from `before` count.
                if target != before and towards[target] == sip:
                    delays_ps = least[egress.peer][egress.remaining_hops]
                    source, delay_ps = self.lp_of[before], egress.delay_ps
                    delays_ps[source] = min(delay_ps, delays_ps.get(source, delay_ps))
        return {peer: _paths(of_hops) for peer, of_hops in least.items()}

    def _entrances(self, lp: int) -> Iterator[tuple[int, int]]:
        """(SIP of another LP, SIP of this LP) of the links by which forwarded messages come."""
        if self._fabric.forwards:
            for sip in self.sips_of_lp[lp]:
                for other in self._fabric.neighbours(sip):
                    if self.lp_of[other] != lp:
                        yield other, sip

    def _egresses_of(self, lp: int) -> dict[int, dict[int, Egress]]:
        """The egresses of every SIP of an LP."""
        egresses: dict[int, dict[int, Egress]] = {sip: {} for sip in self.sips_of_lp[lp]}
        # Of one LP no route leads out.
        if len(self.sips_of_lp) == 1:
            return egresses
        # Most routes leave in a few ways, which their SIPs share.
        shared: dict[Egress, Egress] = {}
        for target in range(self._fabric.sips):
            for sip, egress in self._egresses_to(target, lp).items():
                if egress is not None:
                    egresses[sip][target] = shared.setdefault(egress, egress)
        return egresses

    def _egresses_to(self, target: int, lp: int) -> dict[int, Egress | None]:
        """The egress of every SIP of an LP to `target`; None if the route never leaves the LP.

        The routes to one target are a tree: each SIP on them is visited once, behind the next one.
        """
        lp_of, next_hops = self.lp_of, self._fabric.next_hops
        # A promise counts channels, not links: hops between SIPs of one LP cross no channel.
        channels = {target: 0}
        egresses: dict[int, Egress | None] = {target: None} if lp_of[target] == lp else {}
        for source in self.sips_of_lp[lp]:
            sip, route = source, list[int]()
            while sip not in channels:
                route.append(sip)
                sip = next_hops(sip)[target]
            while route:
                following, sip = sip, route.pop()
                peer = lp_of[following]
                channels[sip] = channels[following] + (lp_of[sip] != peer)
                if lp_of[sip] != lp:
                    continue
                if peer != lp:
                    # The delay counts only up to the channel: its lookahead has the time on it.
                    egresses[sip] = Egress(peer, 0, channels[following], sip)
                else:
                    egresses[sip] = self._delayed(egresses[following])
        return egresses

    def _delayed(self, onward: Egress | None) -> Egress | None:
        """The egress of a route that enters another one of this LP by a link."""
        if onward is None:
            return None
        peer, delay_ps, remaining_hops, last_sip = onward
        return Egress(peer, self._hop_ps + delay_ps, remaining_hops, last_sip)


def _paths(least: Mapping[int, Mapping[int, int]]) -> tuple[tuple[ForwardingPath, ...], ...]:
    """The paths for n = 0, 1, ... from the least delay of each source by remaining hops."""
    paths: list[tuple[ForwardingPath, ...]] = []
    delays_ps: dict[int, int] = {}
    of_n: tuple[ForwardingPath, ...] = ()
    # "n or more": what holds for more remaining hops counts for fewer, too.
    for n in range(max(least), -1, -1):
        of_n_alone = least.get(n, {})
        for source, delay_ps in of_n_alone.items():
            delays_ps[source] = min(delay_ps, delays_ps.get(source, delay_ps))
        if of_n_alone:
            of_n = tuple(ForwardingPath(*path) for path in sorted(delays_ps.items()))
        paths.append(of_n)
    return tuple(reversed(paths))
