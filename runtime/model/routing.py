"""Computes the routes inside a SIP. One rule: columns (x) first, then rows (y).

Cube mesh: along the row of cubes to the target's column, then along that column, through the UCIe
ports of every cube that is passed. The IO chiplet has a port in every column (edge N, S) or row
(edge W, E), so routes to and from it are straight along the cube's own column or row.

Router grid of a cube: a shortest path in hops. Where several next routers are nearer to the target,
a column move is taken before a row move, west before east and north before south. On a grid without
a hole this is XY routing, the dimension-order routing of Dally & Towles.

Every component is attached to the router mesh by its stem (`CubePlan.stems`); no route passes the
stem of another component. A PE reaches its own HBM controller through their common crossbar,
without entering the mesh.

A route that would pass what is down avoids it: between cubes by `detours`, in the router grid
by the rule above without the links that are down.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import NamedTuple

from runtime.core.trace import IO_CHIPLET
from runtime.model.graph import OPPOSITE, ChipGraph, Link
from runtime.model.parts.detours import Detours
from runtime.model.schema.quantities import Side

_DownLinks = frozenset[tuple[int, int]]
"""Links of a cube that are down, as pairs of its routers."""


class NoRouteError(Exception):
    """Two components without a route, since parts are down. Fields: their names."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(source, target)
        self.source, self.target = source, target


@dataclass(frozen=True, slots=True)
class Stage:
    """One link of a route with a bandwidth, and the delays before and after it.

        event of the stage -- pre_ps --> link (wait, serialise) -- post_ps --> event of the next

    The hop costs one event: pure delays are merged into the stage of the next or previous link.
    `pre_ps` contains only the UCIe port that every message of the link passes. It is equal for all
    of them, so the order of the events is the order of arrival at the link (FIFO), and all routes
    share one stage per link.
    """

    link: int
    pre_ps: int
    post_ps: int


@dataclass(frozen=True, slots=True)
class Route:
    """The route from node `source` to node `target`, both included in `nodes`.

    The delays of the stages sum exactly to the overheads of all nodes that are entered, that is all
    but the source, and the delays of all wires.
    """

    nodes: tuple[int, ...]
    stages: tuple[Stage, ...]
    source: int
    target: int

    @property
    def latency_ps(self) -> int:
        """The time of a message's head without contention: overheads and wires."""
        return sum(stage.pre_ps + stage.post_ps for stage in self.stages)


class RouteLeg(NamedTuple):
    """A part of routes: its nodes with both ends, and its stages."""

    nodes: tuple[int, ...]
    stages: tuple[Stage, ...]


class ChipRoutes:
    """The routes between the components of one SIP, each computed on its first use.

    A route between two cubes has three legs: to the port by which it leaves its cube, from there to
    the port by which it enters the other cube, and to its target. Legs are computed once and
    joined: the routes between the PEs and the memories of 16 cubes are 33,000, their legs 2,000.
    """

    def __init__(self, graph: ChipGraph) -> None:
        self._graph = graph
        self._plan = graph.plan
        self._routes: dict[tuple[int, int], Route] = {}
        self._legs: dict[tuple[int, int], RouteLeg] = {}
        # By the cubes at its ends; `IO_CHIPLET` is one of them.
        self._crossings: dict[tuple[int, int], RouteLeg] = {}
        # By the links of the cube that are down: almost all cubes are alike.
        self._in_cube: dict[_DownLinks, dict[tuple[int, int], tuple[int, ...]]] = {}
        self._hops_to: dict[tuple[int, _DownLinks], dict[int, int]] = {}
        self._detours = Detours(graph, graph.down) if graph.down.has_detours else None
        self._stages = {(link.source, link.target): self._stage(link) for link in graph.links}

    def route(self, source: int, target: int) -> Route:
        """The route between two nodes that are not UCIe ports: messages only pass through ports."""
        route = self._routes.get((source, target))
        if route is None:
            legs = self._legs_between(source, target)
            nodes = (source, *chain.from_iterable(leg.nodes[1:] for leg in legs))
            stages = tuple(chain.from_iterable(leg.stages for leg in legs))
            route = self._routes[source, target] = Route(nodes, stages, source, target)
        return route

    def stages(self, source: int, target: int) -> tuple[Stage, ...]:
        """The stages of `route`, for a caller that keeps what it makes of them."""
        return tuple(chain.from_iterable(leg.stages for leg in self._legs_between(source, target)))

    def _stage(self, link: Link) -> Stage | None:
        """The stage of a link with the delays of UCIe ports at its ends; None without bandwidth."""
        graph = self._graph
        # A link without a bandwidth cannot queue: its delay is part of the neighbouring stages.
        if link.bw_gbs is None:
            return None
        pre_ps, post_ps = 0, link.wire_ps + graph.nodes[link.target].overhead_ps
        # Packets enter a UCIe port from one router only, so this delay is the same for all of them.
        if graph.nodes[link.source].kind == "ucie":
            to_port = graph.link(graph.behind(link.source), link.source)
            pre_ps = to_port.wire_ps + graph.nodes[link.source].overhead_ps
        # The port and its wire only delay; they need no event of their own.
        if graph.nodes[link.target].kind == "ucie":
            from_port = graph.link(link.target, graph.behind(link.target))
            post_ps += from_port.wire_ps + graph.nodes[from_port.target].overhead_ps
        return Stage(link.index, pre_ps, post_ps)

    def _legs_between(self, source: int, target: int) -> tuple[RouteLeg, ...]:
        """The legs of a route, each of which begins where the previous one ends."""
        near, far = self._graph.nodes[source], self._graph.nodes[target]
        assert "ucie" not in (near.kind, far.kind), (
            f"a route from {source} to {target} cannot end at a UCIe port"
        )
        if near.cube == far.cube:
            return (self._within(source, target),)
        crossing = self._crossings.get((near.cube, far.cube))
        if crossing is None:
            crossing = self._leg(self._crossing(near.cube, far.cube))
            self._crossings[near.cube, far.cube] = crossing
        first, last = crossing.nodes[0], crossing.nodes[-1]
        return self._within(source, first), crossing, self._within(last, target)

    def _within(self, source: int, target: int) -> RouteLeg:
        """The leg between two nodes of one cube or of the IO chain; ports of the cube included."""
        leg = self._legs.get((source, target))
        if leg is None:
            leg = self._legs[source, target] = self._leg(self._inside(source, target))
        return leg

    def _leg(self, nodes: tuple[int, ...]) -> RouteLeg:
        hops = (self._stages[hop] for hop in pairwise(nodes))
        return RouteLeg(nodes, tuple(stage for stage in hops if stage is not None))

    def _crossing(self, source: int, target: int) -> tuple[int, ...]:
        """The nodes from where routes leave a cube to where they enter another one.

        At the IO chiplet, which has a port for every column or row, that is its NoC.
        """
        graph, nodes, cube = self._graph, list[int](), source
        sides: Sequence[Side]
        if source == IO_CHIPLET:
            cube, sides = self._from_io(target)
            nodes += (graph.io_noc, graph.mesh_port(cube), graph.port(cube, graph.edge))
        elif target == IO_CHIPLET:
            sides = self._to_io(source)
        else:
            sides = self._between(source, target)
        for side in sides:
            port = graph.port(cube, side)
            # A cube that is only passed is crossed from port to port.
            nodes += self._inside(nodes[-1], port)[1:] if nodes else (port,)
            beside = graph.beside(cube, side)
            if beside is None or beside == IO_CHIPLET:
                return (*nodes, graph.mesh_port(cube), graph.io_noc)
            cube = beside
            nodes.append(graph.port(cube, OPPOSITE[side]))
        return tuple(nodes)

    def _from_io(self, target: int) -> tuple[int, Sequence[Side]]:
        """The cube by which a route from the IO chiplet enters the mesh, and its sides from it."""
        graph, cube = self._graph, self._at_edge(target)
        inwards: Side = OPPOSITE[graph.edge]
        sides: Sequence[Side] = [*repeat(inwards, graph.edge_distance(target))]
        if self._detours is None:
            return cube, sides
        if (cube, graph.edge) not in graph.down.ports and self._detours.is_whole(cube, sides):
            return cube, sides
        paths = [(each, self._between(each, target)) for each in self._detours.edge_cubes()]
        return self._shortest(paths, "io.io_noc", f"cube{target}")

    def _to_io(self, source: int) -> Sequence[Side]:
        """The sides of a route to the IO chiplet."""
        graph = self._graph
        sides: Sequence[Side] = [*repeat(graph.edge, graph.edge_distance(source) + 1)]
        if self._detours is None or self._detours.is_whole(source, sides):
            return sides
        paths = [(each, self._between(source, each)) for each in self._detours.edge_cubes()]
        _, inside = self._shortest(paths, f"cube{source}", "io.io_noc")
        return [*inside, graph.edge]

    def _shortest(
        self, paths: Sequence[tuple[int, Sequence[Side]]], source: str, target: str
    ) -> tuple[int, Sequence[Side]]:
        """The path over the fewest cubes, the first of several. Raises `NoRouteError`."""
        if not paths:
            raise NoRouteError(source, target)
        # `min` returns the first of equal lengths.
        return min(paths, key=lambda each: len(each[1]))

    def _between(self, source: int, target: int) -> Sequence[Side]:
        """The sides of a route between two cubes. Raises `NoRouteError`."""
        sides = self._sides_between(source, target)
        if self._detours is None or self._detours.is_whole(source, sides):
            return sides
        detour = self._detours.sides(source, target)
        if detour is None:
            raise NoRouteError(f"cube{source}", f"cube{target}")
        return detour

    def _sides_between(self, source: int, target: int) -> list[Side]:
        """The sides by which a message leaves the cubes: along the row first, then the column."""
        (from_col, from_row), (to_col, to_row) = (
            self._graph.mesh_position(source),
            self._graph.mesh_position(target),
        )
        # Dimension order: no route turns from a column into a row. Without these turns the links
        # between cubes have no cycle of dependencies (W. J. Dally, C. L. Seitz, Deadlock-free
        # message routing in multiprocessor interconnection networks, 1987).
        across: Side = "E" if to_col > from_col else "W"
        along: Side = "S" if to_row > from_row else "N"
        return [*repeat(across, abs(to_col - from_col)), *repeat(along, abs(to_row - from_row))]

    def _at_edge(self, cube: int) -> int:
        """The cube beside the IO chiplet in the column or row of `cube`."""
        for _ in range(self._graph.edge_distance(cube)):
            beside = self._graph.beside(cube, self._graph.edge)
            assert beside is not None, "the cube mesh has edge_distance cubes in this direction"
            cube = beside
        return cube

    def _inside(self, source: int, target: int) -> tuple[int, ...]:
        """The nodes between two nodes of one cube or of the IO chain, with both."""
        graph, (near, far) = self._graph, (self._graph.nodes[source], self._graph.nodes[target])
        if near.cube == IO_CHIPLET:
            return tuple(_span(source, target))
        base = graph.cube_base(near.cube)
        # To a port leads the router that it is attached to.
        first = graph.behind(source) if near.kind == "ucie" else source
        last = graph.behind(target) if far.kind == "ucie" else target
        # The plan is the same for all cubes, so a path is computed once and shifted to a cube.
        ends = first - base, last - base
        down = graph.down.router_links(near.cube)
        paths = self._in_cube.setdefault(down, {})
        path = paths.get(ends)
        if path is None:
            path = paths[ends] = self._path(*ends, down)
        nodes = tuple([base + local for local in path])
        before = (source,) if first != source else ()
        after = (target,) if last != target else ()
        return (*before, *nodes, *after)

    def _path(self, source: int, target: int, down: "_DownLinks") -> tuple[int, ...]:
        """The path along both stems, to their common node or through the mesh between routers."""
        # Both stems may share a router or a crossbar: the route turns there and leaves the mesh
        # alone.
        egress, ingress = self._stem(source, target), self._stem(target, source)[::-1]
        for index, local in enumerate(egress):
            if local in ingress:
                return egress[:index] + ingress[ingress.index(local) :]
        return egress[:-1] + self.mesh_path(egress[-1], ingress[0], down) + ingress[1:]

    def _stem(self, local: int, other: int) -> tuple[int, ...]:
        """The stem of a node towards `other`: into the mesh, or for a PE into its own crossbar."""
        node, peer = self._plan.nodes[local], self._plan.nodes[other]
        if node.kind == "pe" and peer.kind in ("xbar", "hbm_ctrl") and node.pe == peer.pe:
            return (local, *self._plan.stems[self._plan.xbar(node.pe)])
        return self._plan.stems[local]

    def mesh_path(
        self, source: int, target: int, down: "_DownLinks" = frozenset()
    ) -> tuple[int, ...]:
        """The routers of a cube on the way from one of them to another, both included.

        `down` are links between routers that it does not take. Raises `NoRouteError`.
        """
        # One breadth-first search for each target serves the routes from all routers of the cube.
        if (target, down) not in self._hops_to:
            self._hops_to[target, down] = self._plan.grid.hops_to(target, down)
        # Neighbours are ordered W, E, N, S: the first that is nearer to the target obeys the rule
        # "columns before rows".
        hops, path = self._hops_to[target, down], [source]
        if source not in hops:
            names = [self._plan.nodes[router].name for router in (source, target)]
            raise NoRouteError(*names)
        while path[-1] != target:
            nearer = hops[path[-1]] - 1
            path.append(
                next(
                    router
                    for router in self._plan.grid.neighbours[path[-1]]
                    if hops.get(router) == nearer and (path[-1], router) not in down
                )
            )
        return tuple(path)


def _span(first: int, last: int) -> range:
    """The nodes of the IO chain (host, pcie_ep, io_cpu, io_noc), in either direction."""
    step = 1 if first <= last else -1
    return range(first, last + step, step)
