"""Routes inside a SIP and between SIPs. One rule everywhere: columns (x) first, then rows (y).

Cube mesh: from cube to cube first along the row of cubes to the target's column, then along that column, through the
UCIe ports of every cube on the way. The IO chiplet has a port in every column (edge N, S) or row (edge W, E): the way to
it and from it is straight along the cube's own column or row.

Router grid of a cube: a shortest path in hops; where several next routers shorten it, a column move is taken before a row
move, west before east and north before south. On a grid without a hole that is XY routing.

Components hang on the mesh by their stem (`CubePlan.stems`); no route passes through the stem of another component. A PE
and its own HBM controller meet in their crossbar, without entering the mesh.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat

from runtime.core.simtime import exact, ps_from_ns
from runtime.core.trace import IO_CHIPLET
from runtime.model.cube_plan import wire_ps
from runtime.model.graph import OPPOSITE, ChipGraph, Link
from runtime.model.schema import Side, Topology


@dataclass(frozen=True, slots=True)
class Stage:
    """One bandwidth-limited link of a route and the delays around it.

    A message waits for the link `pre_ps` after the event that starts the stage; `post_ps` after its head has left the
    link, the next stage starts. `pre_ps` covers only a UCIe port through which every message of the link passes, so it is
    the same for all of them, and the order of the events is the order in which they reach the link. A link has therefore one
    stage, which all routes share.
    """

    link: int
    pre_ps: int
    post_ps: int


@dataclass(frozen=True, slots=True)
class Route:
    """The way from node `source` to node `target`, both in `nodes`.

    The stages' delays sum to the overheads of all nodes entered (all but the source) and all wires, exactly.
    """

    nodes: tuple[int, ...]
    stages: tuple[Stage, ...]
    source: int
    target: int

    @property
    def latency_ps(self) -> int:
        """The time of the head of a message without contention: overheads and wires, no serialisation."""
        return sum(stage.pre_ps + stage.post_ps for stage in self.stages)


class ChipRoutes:
    """The routes between the components of one SIP, each computed once, when it is first asked for."""

    def __init__(self, graph: ChipGraph) -> None:
        self._graph = graph
        self._plan = graph.plan
        self._routes: dict[tuple[int, int], Route] = {}
        self._in_cube: dict[tuple[int, int], tuple[int, ...]] = {}
        self._hops_to: dict[int, dict[int, int]] = {}
        self._stages = {(link.source, link.target): self._stage(link) for link in graph.links}

    def route(self, source: int, target: int) -> Route:
        """The route between two nodes that are not UCIe ports: messages pass through ports, they do not start there."""
        route = self._routes.get((source, target))
        if route is None:
            route = self._routes[source, target] = self._compute(source, target)
        return route

    def _compute(self, source: int, target: int) -> Route:
        kinds = (self._graph.nodes[source].kind, self._graph.nodes[target].kind)
        assert "ucie" not in kinds, f"a route from {source} to {target} cannot end at a UCIe port"
        nodes = tuple(self._walk(source, target))
        hops = (self._stages[hop] for hop in pairwise(nodes))
        return Route(nodes, tuple(stage for stage in hops if stage is not None), source, target)

    def _stage(self, link: Link) -> Stage | None:
        """The stage of a link with a bandwidth, with the delay-only wires of the UCIe ports at its ends."""
        graph = self._graph
        if link.bw_gbs is None:
            return None
        pre_ps, post_ps = 0, link.wire_ps + graph.nodes[link.target].overhead_ps
        if graph.nodes[link.source].kind == "ucie":
            to_port = graph.link(graph.behind(link.source), link.source)
            pre_ps = to_port.wire_ps + graph.nodes[link.source].overhead_ps
        if graph.nodes[link.target].kind == "ucie":
            from_port = graph.link(link.target, graph.behind(link.target))
            post_ps += from_port.wire_ps + graph.nodes[from_port.target].overhead_ps
        return Stage(link.index, pre_ps, post_ps)

    def _walk(self, source: int, target: int) -> Iterator[int]:
        """The nodes from source to target, both included."""
        from_cube, to_cube = self._graph.nodes[source].cube, self._graph.nodes[target].cube
        if from_cube != IO_CHIPLET:
            sides = (
                self._way_out(from_cube) if to_cube == IO_CHIPLET else self._way(from_cube, to_cube)
            )
            yield from self._cross(
                from_cube, source - self._graph.cube_base(from_cube), sides, target
            )
        elif to_cube != IO_CHIPLET:
            yield from _span(source, self._graph.io_noc)
            yield self._graph.mesh_port(to_cube)
            yield from self._enter(to_cube, target)
        else:
            yield from _span(source, target)

    def _cross(self, cube: int, local: int, sides: list[Side], target: int) -> Iterator[int]:
        """From node `local` of a cube out by each of `sides` in turn, then to the target."""
        graph, ports = self._graph, self._plan.ports
        for side in sides:
            yield from self._inside(cube, local, ports[side].router)
            yield graph.port(cube, side)
            beside = graph.beside(cube, side)
            if beside is None or beside == IO_CHIPLET:
                yield graph.mesh_port(cube)
                yield from _span(graph.io_noc, target)
                return
            cube, local = beside, ports[OPPOSITE[side]].router
            yield graph.port(cube, OPPOSITE[side])
        yield from self._inside(cube, local, target - graph.cube_base(cube))

    def _enter(self, cube: int, target: int) -> Iterator[int]:
        """From the port of the IO chiplet straight along the column or row of `cube`, to the target in it."""
        outward, distance = self._graph.edge, self._graph.edge_distance(cube)
        edge_cube = cube
        for _ in range(distance):
            edge_cube = self._graph.beside(edge_cube, outward)
            assert edge_cube is not None, "the edge is as far as edge_distance says"
        yield self._graph.port(edge_cube, outward)
        yield from self._cross(
            edge_cube, self._plan.ports[outward].router, [OPPOSITE[outward]] * distance, target
        )

    def _way(self, source: int, target: int) -> list[Side]:
        """The sides by which a message leaves each cube: along the row of cubes first, then along the column."""
        (from_col, from_row), (to_col, to_row) = (
            self._graph.cube_place(source),
            self._graph.cube_place(target),
        )
        across: Side = "E" if to_col > from_col else "W"
        along: Side = "S" if to_row > from_row else "N"
        return [*repeat(across, abs(to_col - from_col)), *repeat(along, abs(to_row - from_row))]

    def _way_out(self, cube: int) -> list[Side]:
        return [self._graph.edge] * (self._graph.edge_distance(cube) + 1)

    def _inside(self, cube: int, source: int, target: int) -> Iterator[int]:
        """The nodes between two nodes of the plan, in one cube: computed once for all cubes."""
        path = self._in_cube.get((source, target))
        if path is None:
            path = self._in_cube[source, target] = self._path(source, target)
        base = self._graph.cube_base(cube)
        return (base + local for local in path)

    def _path(self, source: int, target: int) -> tuple[int, ...]:
        """Up one stem and down the other: where they meet, or through the mesh between their routers."""
        out, back = self._stem(source, target), self._stem(target, source)[::-1]
        for place, local in enumerate(out):
            if local in back:
                return out[:place] + back[back.index(local) :]
        return out[:-1] + self._through_mesh(out[-1], back[0]) + back[1:]

    def _stem(self, local: int, other: int) -> tuple[int, ...]:
        """The way from a node towards `other`: into the mesh, or for a PE into its own crossbar."""
        node, peer = self._plan.nodes[local], self._plan.nodes[other]
        if node.kind == "pe" and peer.kind in ("xbar", "hbm_ctrl") and node.pe == peer.pe:
            return (local, *self._plan.stems[self._plan.xbar(node.pe)])
        return self._plan.stems[local]

    def _through_mesh(self, source: int, target: int) -> tuple[int, ...]:
        if target not in self._hops_to:
            self._hops_to[target] = self._plan.grid.hops_to(target)
        hops, path = self._hops_to[target], [source]
        while path[-1] != target:
            nearer = hops[path[-1]] - 1
            path.append(
                next(
                    router
                    for router in self._plan.grid.neighbours[path[-1]]
                    if hops[router] == nearer
                )
            )
        return tuple(path)


def _span(first: int, last: int) -> range:
    """The nodes of the IO chain (host, pcie_ep, io_cpu, io_noc) from `first` to `last`, in either direction."""
    step = 1 if first <= last else -1
    return range(first, last + step, step)


@dataclass(frozen=True, slots=True)
class SipLink:
    """The link from one SIP to a neighbour.

    It leaves by port `port` of the source's IO chiplet and is entered when the head of a message leaves the source's
    IO NoC; `latency_ps` later the head is at the target's IO NoC, whose own overhead is not included.
    """

    source: int
    target: int
    port: str
    latency_ps: int
    bw_gbs: float


class SipFabric:
    """Which SIPs are neighbours, the way between two of them, and what one crossing costs.

    Rings go the shortest way round, ties in the + direction. Grids go along columns (x) first, then rows (y), with
    wrap-around the shortest way, ties in the + direction. Through a switch every SIP is every other's neighbour.
    """

    def __init__(self, topology: Topology) -> None:
        self.sips = topology.sips
        self._columns, self._rows = topology.sip_grid
        self._wraps = topology.system.sips.topology != "mesh_2d_no_wrap"
        self._switched = topology.system.sips.fabric == "switch"
        self._bw_gbs = topology.ucie.bw_gbs
        self._crossing_ps = crossing_ps(topology)

    def grid(self, sip: int) -> tuple[int, int]:
        """Column and row of a SIP; a ring is one row."""
        return sip % self._columns, sip // self._columns

    def neighbours(self, sip: int) -> tuple[int, ...]:
        """The SIPs that one crossing reaches, in ascending order."""
        if self._switched:
            return tuple(other for other in range(self.sips) if other != sip)
        (column, row) = self.grid(sip)
        beside = {self._at(column + dx, row + dy) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))}
        return tuple(sorted(other for other in beside - {None, sip} if other is not None))

    def _at(self, column: int, row: int) -> int | None:
        if self._wraps:
            column, row = column % self._columns, row % self._rows
        inside = 0 <= column < self._columns and 0 <= row < self._rows
        return row * self._columns + column if inside else None

    def next_hop(self, at: int, target: int) -> int:
        """The neighbour of `at` on the way to another SIP."""
        assert at != target, f"SIP {at} is already there"
        if self._switched:
            return target
        (column, row), (to_column, to_row) = self.grid(at), self.grid(target)
        if column != to_column:
            return row * self._columns + self._step(column, to_column, self._columns)
        return self._step(row, to_row, self._rows) * self._columns + column

    def _step(self, at: int, target: int, size: int) -> int:
        forward = (target - at) % size
        if not self._wraps:
            return at + (1 if target > at else -1)
        return (at + (1 if forward <= size - forward else -1)) % size

    def path(self, source: int, target: int) -> tuple[int, ...]:
        """The SIPs from source to target, both included."""
        path = [source]
        while path[-1] != target:
            path.append(self.next_hop(path[-1], target))
        return tuple(path)

    @property
    def diameter(self) -> int:
        """Crossings between the two SIPs that are farthest apart."""
        if self._switched:
            return min(1, self.sips - 1)
        if self._wraps:
            return self._columns // 2 + self._rows // 2
        return self._columns + self._rows - 2

    def link(self, source: int, target: int) -> SipLink:
        """The link from a SIP to its neighbour."""
        assert target in self.neighbours(source), f"SIPs {source} and {target} are not neighbours"
        return SipLink(source, target, f"io.ucie.sip{target}", self._crossing_ps, self._bw_gbs)

    @cached_property
    def links(self) -> tuple[SipLink, ...]:
        """One link per ordered pair of neighbours, by source, then target."""
        return tuple(
            self.link(source, target)
            for source in range(self.sips)
            for target in self.neighbours(source)
        )

    def latency_ps(self, source: int, target: int) -> int:
        """The delay of one crossing to a neighbour: see `crossing_ps`."""
        return self.link(source, target).latency_ps

    def lookahead_ps(self, source: int, target: int) -> int:
        """The least time between a message's sending event, its head leaving the IO NoC, and its arrival next door."""
        return self.latency_ps(source, target)


def crossing_ps(topology: Topology) -> int:
    """Port overhead, wire, port overhead; through a switch its overhead and a second wire come in between."""
    sips = topology.system.sips
    spacing_ps = wire_ps(exact(sips.spacing_mm), topology.ns_per_mm)
    direct_ps = 2 * ps_from_ns(topology.ucie.overhead_ns) + spacing_ps
    if sips.fabric == "direct":
        return direct_ps
    return direct_ps + ps_from_ns(topology.system.components.switch.overhead_ns) + spacing_ps
