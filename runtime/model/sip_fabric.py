"""Routes between SIPs: neighbours, next hops, and the latency of a crossing.

One rule, as inside a SIP: columns (x) first, then rows (y).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from runtime.core.simtime import exact, ps_from_ns
from runtime.model.cube_plan import wire_ps
from runtime.model.schema.topology_schema import Topology


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


class SipFabric:
    """The network between SIPs: `columns` and `rows` of a grid, and whether it `wraps` round.

    Routes take the shorter direction of a ring, the + direction if both are equal. In grids they
    follow columns (x) first, then rows (y), each like a ring if the grid wraps around. Through a
    switch (`is_switched`) every SIP is a neighbour of every other, and has one port for all. Every
    link leads both ways, and has `latency_ps`.
    """

    def __init__(self, topology: Topology) -> None:
        self.sips = topology.sips
        self.columns, self.rows = topology.sip_grid
        self.wraps = topology.system.sips.topology != "mesh_2d_no_wrap"
        self.is_switched = topology.system.sips.fabric == "switch"
        self._bw_gbs = topology.ucie.bw_gbs
        self.latency_ps = crossing_ps(topology)
        self._next_hops: dict[int, tuple[int, ...]] = {}

    def grid(self, sip: int) -> tuple[int, int]:
        """Column and row of a SIP; a ring is one row."""
        return sip % self.columns, sip // self.columns

    def neighbours(self, sip: int) -> tuple[int, ...]:
        """The SIPs at one crossing from `sip`, in ascending order."""
        if self.is_switched:
            return tuple(other for other in range(self.sips) if other != sip)
        (column, row) = self.grid(sip)
        beside = {self._at(column + dx, row + dy) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}
        # On a ring of two both directions lead to the same neighbour; a set keeps it once.
        return tuple(sorted(other for other in beside - {None, sip} if other is not None))

    def _at(self, column: int, row: int) -> int | None:
        if self.wraps:
            column, row = column % self.columns, row % self.rows
        inside = 0 <= column < self.columns and 0 <= row < self.rows
        return row * self.columns + column if inside else None

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

    def _routes_from(self, sip: int) -> tuple[int, ...]:
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

    @property
    def diameter(self) -> int:
        """Crossings between the two SIPs that are farthest apart."""
        if self.is_switched:
            return min(1, self.sips - 1)
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
        return SipLink(source, target, f"io.ucie.sip{target}", self.latency_ps, self._bw_gbs)

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
