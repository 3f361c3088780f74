"""Routes between SIPs: neighbours, next hops, and the latency of a crossing.

One rule, as inside a SIP: columns (x) first, then rows (y).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from runtime.core.simtime import exact, ps_from_ns
from runtime.model.cube_plan import wire_ps
from runtime.model.dependencies import Dependencies, reachable_ends
from runtime.model.grid_of_sips import GridOfSips
from runtime.model.parts.overrides import parts_of
from runtime.model.schema.topology_schema import Topology

_UCIE_NS, _UCIE_GBS = "ucie.overhead_ns", "ucie.bw_gbs"
_NOC_NS = "sip.io_chiplet.noc.overhead_ns"


@dataclass(frozen=True, slots=True)
class SipLink:
    """The link from one SIP to a neighbour, through port `port` of the source's IO chiplet.

    A message enters it when its head leaves the IO NoC of the source. `latency_ps` later the head
    arrives at the IO NoC of the target, whose overhead is not included.
    """

    source: int
    target: int
    port: str
    latency_ps: int
    bw_gbs: float


class SipFabric(GridOfSips):
    """The network between the SIPs of a grid.

    Routes take the shorter direction of a ring, the + direction if both are equal. In grids they
    follow columns (x) first, then rows (y), each like a ring if the grid wraps around. Every link
    leads both ways.
    """

    def __init__(self, topology: Topology) -> None:
        super().__init__(topology)
        self._topology = topology
        self._parts = [parts_of(topology, sip) for sip in range(self.sips)]
        self._is_uniform = all(parts.is_uniform for parts in self._parts)
        self._bw_gbs = topology.ucie.bw_gbs
        self._crossing_ps = crossing_ps(topology)
        self._noc_ps = ps_from_ns(topology.sip.io_chiplet.noc.overhead_ns)
        self._next_hops: dict[int, tuple[int, ...]] = {}

    def neighbours(self, sip: int) -> tuple[int, ...]:
        """The SIPs at one crossing from `sip`, over links that are not down, in ascending order."""
        if self._is_uniform:
            return self.beside(sip)
        return tuple(other for other in self.beside(sip) if not self._is_down(sip, other))

    def entry_ps(self, source: int, target: int) -> int:
        """The time from the departure of a head at the port of a SIP until it has entered the IO
        NoC of a neighbour.
        """
        if self._is_uniform:
            return self._crossing_ps + self._noc_ps
        noc_ns = self._parts[target].values.get("io.io_noc", {}).get(_NOC_NS)
        noc_ps = self._noc_ps if noc_ns is None else ps_from_ns(noc_ns)
        return self._latency_ps(source, target) + noc_ps

    @cached_property
    def least_entry_ps(self) -> int:
        """The least `entry_ps` of all links: the lookahead between SIPs."""
        uniform_ps = self._crossing_ps + self._noc_ps
        if self._is_uniform:
            return uniform_ps
        own_ps = (self.entry_ps(link.source, link.target) for link in self.links)
        # One SIP has no link.
        return min(own_ps, default=uniform_ps)

    def port_gbs(self, sip: int, port: str) -> float:
        """The bandwidth of a port of a SIP to others, in each direction."""
        return self._parts[sip].values.get(port, {}).get(_UCIE_GBS, self._bw_gbs)

    def next_hop(self, sip: int, target: int) -> int:
        """The neighbour of `sip` on the route to another SIP."""
        assert sip != target, f"SIP {sip} is already there"
        return self.next_hops(sip)[target]

    def next_hops(self, sip: int) -> tuple[int, ...]:
        """The neighbour of `sip` on the route to each SIP, by target; `sip` for itself."""
        hops = self._next_hops.get(sip)
        if hops is None:
            hops = self._next_hops[sip] = self._routes_from(sip)
        return hops

    @cached_property
    def has_detours(self) -> bool:
        """Whether a link between SIPs is down."""
        pairs = ((sip, other) for sip in range(self.sips) for other in self.beside(sip))
        return not self._is_uniform and any(self._is_down(*pair) for pair in pairs)

    def _is_down(self, sip: int, other: int) -> bool:
        """Whether the link between two SIPs is down, at either of its ports."""
        ends = ((sip, self.port(other)), (other, self.port(sip)))
        return any(port in self._parts[each].down for each, port in ends)

    def _routes_from(self, sip: int) -> tuple[int, ...]:
        if self.has_detours:
            return tuple(self._detours[target].get(sip, sip) for target in range(self.sips))
        return self._uniform_routes(sip)

    @cached_property
    def _detours(self) -> list[dict[int, int]]:
        """Next hops of all SIPs, for each target.

        A route keeps to the rule from the first SIP on from which that is whole. To there, it is a
        shortest way; of several, the neighbour of the lowest number counts.
        """
        return [self._routes_to(target) for target in range(self.sips)]

    def _routes_to(self, target: int) -> dict[int, int]:
        hops = {target: target}
        distances = {target: 0}
        for sip in range(self.sips):
            path = [sip]
            while path[-1] != target:
                following = self._uniform_routes(path[-1])[target]
                if self._is_down(path[-1], following):
                    break
                path.append(following)
            else:
                distances[sip] = len(path) - 1
                hops[sip] = path[1] if len(path) > 1 else sip
        left = set(range(self.sips)) - hops.keys()
        # SIPs get their next hop in the order of their distance, as in Dijkstra's algorithm; so no
        # route returns to a SIP.
        while left:
            ways = [
                (distances[other] + 1, sip, other)
                for sip in sorted(left)
                for other in self.neighbours(sip)
                if other in hops
            ]
            if not ways:
                break
            distance, sip, other = min(ways)
            hops[sip], distances[sip] = other, distance
            left.remove(sip)
        return hops

    def _uniform_routes(self, sip: int) -> tuple[int, ...]:
        if self.is_switched:
            return self._straight
        column, row = self.grid(sip)
        # The next hops in this row by column, and in this column by row.
        along_row = [
            row * self.columns + self._step(column, to_column, self.columns)
            for to_column in range(self.columns)
        ]
        along_column = [
            self._step(row, to_row, self.rows) * self.columns + column
            for to_row in range(self.rows)
        ]
        # The whole row before the column, as between cubes: links of rows wait for links of columns
        # and never the reverse, which leaves no cycle through both (Dally & Seitz, 1987).
        hops = [
            along_row[to_column] if to_column != column else along_column[to_row]
            for to_row in range(self.rows)
            for to_column in range(self.columns)
        ]
        hops[sip] = sip
        return tuple(hops)

    @cached_property
    def _straight(self) -> tuple[int, ...]:
        # Through a switch every SIP is one crossing away. All SIPs share this table.
        return tuple(range(self.sips))

    def _step(self, position: int, target: int, size: int) -> int:
        # The distance in the + direction, around the ring.
        forward = (target - position) % size
        if not self.wraps:
            return position + (1 if target > position else -1)
        # `<=`: the + direction wins if both are equal, so routes do not depend on the order of
        # SIPs.
        return (position + (1 if forward <= size - forward else -1)) % size

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """The SIPs from source to target, both included."""
        path = [source]
        while path[-1] != target:
            path.append(self.next_hop(path[-1], target))
        return tuple(path)

    @cached_property
    def layers(self) -> int:
        """The virtual layers of the links between SIPs: 2 if packets are forwarded round a ring."""
        # On a ring of three or fewer no route has two crossings, so no crossing waits for another.
        rings = self.wraps and not self.is_switched
        return 2 if rings and max(self.columns, self.rows) > 3 else 1

    def layer(self, source: int, sip: int, target: int) -> int:
        """The layer of the crossing from `sip` to the next SIP on the route from `source`.

        It is 1 from the wrap-around link of a ring on, the dateline of Dally & Seitz, else 0. So
        the dependencies round a ring are not closed: layer 1 ends before it comes to that link
        again. Columns precede rows, so each of the two dimensions has its own dateline.
        """
        if self.layers == 1:
            return 0
        # Routes take one direction of a ring only. So a packet that goes forward has passed the
        # wrap-around link exactly if the position ahead of it lies before the start of its route.
        here, onward, start = map(self.grid, (sip, self.next_hop(sip, target), source))
        dimension = 0 if here[1] == onward[1] else 1
        size = (self.columns, self.rows)[dimension]
        forward = onward[dimension] == (here[dimension] + 1) % size
        if forward:
            return int(onward[dimension] < start[dimension])
        return int(onward[dimension] > start[dimension])

    @cached_property
    def has_cycles(self) -> bool:
        """Whether full buffers of links could wait for each other in a circle.

        A link in a layer waits for the next one of each route through it. Routes round links that
        are down may close a circle, or enter a SIP by another link than the route that ends there.
        """
        after: Dependencies = {}
        pairs = ((source, target) for source in range(self.sips) for target in range(self.sips))
        for source, target in pairs:
            path = self.path(source, target)
            if len(path) > 1 and self.path(source, path[-2]) != path[:-1]:
                return True
            links = [
                (sip, onward, self.layer(source, sip, target)) for sip, onward in pairwise(path)
            ]
            for link, following in pairwise(links):
                after.setdefault(link, set()).add(following)
        return reachable_ends(after) is None

    @property
    def diameter(self) -> int:
        """Crossings between the two SIPs that are farthest apart."""
        if self.is_switched:
            return min(1, self.sips - 1)
        if self.has_detours:
            sips = range(self.sips)
            return max(len(self.path(sip, other)) - 1 for sip in sips for other in sips)
        if self.wraps:
            # A route takes the shorter direction of each ring, which is half of it at most.
            return self.columns // 2 + self.rows // 2
        return self.columns + self.rows - 2

    @property
    def forwards(self) -> bool:
        """Whether SIPs forward what others send."""
        return self.diameter > 1

    def is_passed(self, sip: int) -> bool:
        """Whether packets between other SIPs pass `sip`."""
        return self.forwards and any(
            hop == sip and target not in {other, sip}
            for other in self.neighbours(sip)
            for target, hop in enumerate(self.next_hops(other))
        )

    def link(self, source: int, target: int) -> SipLink:
        """The link from a SIP to its neighbour."""
        # A SIP at one crossing is the next hop on the route to itself.
        assert source != target == self.next_hops(source)[target], (
            f"SIPs {source} and {target} are not neighbours"
        )
        latency_ps = self._latency_ps(source, target)
        return SipLink(source, target, self.port(target), latency_ps, self._gbs(source, target))

    def _latency_ps(self, source: int, target: int) -> int:
        """The latency of a crossing with the ports at both ends of the link."""
        latency_ps = self._crossing_ps
        port_ps = ps_from_ns(self._topology.ucie.overhead_ns)
        for sip, other in ((source, target), (target, source)):
            own_ns = self._parts[sip].values.get(self.port(other), {}).get(_UCIE_NS)
            latency_ps += 0 if own_ns is None else ps_from_ns(own_ns) - port_ps
        return latency_ps

    def _gbs(self, source: int, target: int) -> float:
        """The bandwidth of a link: through a switch, that of the port of the source."""
        if self.is_switched:
            return self.port_gbs(source, self.port(target))
        ends = ((source, self.port(target)), (target, self.port(source)))
        own = [self._parts[sip].values.get(port, {}).get(_UCIE_GBS) for sip, port in ends]
        return min((each for each in own if each is not None), default=self._bw_gbs)

    @property
    def links(self) -> Iterator[SipLink]:
        """A link for each ordered pair of neighbours, by source, then target."""
        for source in range(self.sips):
            for target in self.neighbours(source):
                yield self.link(source, target)


def crossing_ps(topology: Topology) -> int:
    """The latency of a crossing: port, wire, port; or port, wire, switch, wire, port."""
    sips = topology.system.sips
    spacing_ps = wire_ps(exact(sips.spacing_mm), topology.ns_per_mm)
    direct_ps = 2 * ps_from_ns(topology.ucie.overhead_ns) + spacing_ps
    if sips.fabric == "direct":
        return direct_ps
    # The switch is as far from a SIP as a neighbour would be: one more wire, and its own latency.
    return direct_ps + ps_from_ns(topology.system.components.switch.overhead_ns) + spacing_ps
