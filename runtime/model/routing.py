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
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, repeat

from runtime.core.trace import IO_CHIPLET
from runtime.model.graph import OPPOSITE, ChipGraph, Link
from runtime.model.quantities import Side


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


class ChipRoutes:
    """The routes between the components of one SIP, each computed on its first use."""

    def __init__(self, graph: ChipGraph) -> None:
        self._graph = graph
        self._plan = graph.plan
        self._routes: dict[tuple[int, int], Route] = {}
        self._in_cube: dict[tuple[int, int], tuple[int, ...]] = {}
        self._hops_to: dict[int, dict[int, int]] = {}
        self._stages = {(link.source, link.target): self._stage(link) for link in graph.links}

    def route(self, source: int, target: int) -> Route:
        """The route between two nodes that are not UCIe ports: messages only pass through ports."""
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

    def _walk(self, source: int, target: int) -> Iterator[int]:
        """The nodes from source to target, both included."""
        from_cube, to_cube = self._graph.nodes[source].cube, self._graph.nodes[target].cube
        if from_cube != IO_CHIPLET:
            sides = (
                self._sides_to_io(from_cube)
                if to_cube == IO_CHIPLET
                else self._sides_between(from_cube, to_cube)
            )
            yield from self._cross(
                from_cube, source - self._graph.cube_base(from_cube), sides, target
            )
        elif to_cube != IO_CHIPLET:
            # The IO chiplet has a port for every column or row: no step across it is needed.
            yield from _span(source, self._graph.io_noc)
            yield self._graph.mesh_port(to_cube)
            yield from self._enter(to_cube, target)
        else:
            yield from _span(source, target)

    def _cross(self, cube: int, local: int, sides: list[Side], target: int) -> Iterator[int]:
        """From node `local` of a cube through each of `sides` in turn, then to the target."""
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
        """From the port of the IO chiplet along the column or row of `cube` to the target in it."""
        outward, distance = self._graph.edge, self._graph.edge_distance(cube)
        edge_cube = cube
        for _ in range(distance):
            edge_cube = self._graph.beside(edge_cube, outward)
            assert edge_cube is not None, "the cube mesh has edge_distance cubes in this direction"
        yield self._graph.port(edge_cube, outward)
        yield from self._cross(
            edge_cube, self._plan.ports[outward].router, [OPPOSITE[outward]] * distance, target
        )

    def _sides_between(self, source: int, target: int) -> list[Side]:
        """The sides by which a message leaves the cubes: along the row first, then the column."""
        (from_col, from_row), (to_col, to_row) = (
            self._graph.mesh_position(source),
            self._graph.mesh_position(target),
        )
        across: Side = "E" if to_col > from_col else "W"
        along: Side = "S" if to_row > from_row else "N"
        return [*repeat(across, abs(to_col - from_col)), *repeat(along, abs(to_row - from_row))]

    def _sides_to_io(self, cube: int) -> list[Side]:
        return [self._graph.edge] * (self._graph.edge_distance(cube) + 1)

    def _inside(self, cube: int, source: int, target: int) -> Iterator[int]:
        """The nodes between two nodes of one cube: computed once for all cubes."""
        # The plan is the same for all cubes, so a path is computed once and shifted to a cube.
        path = self._in_cube.get((source, target))
        if path is None:
            path = self._in_cube[source, target] = self._path(source, target)
        base = self._graph.cube_base(cube)
        return (base + local for local in path)

    def _path(self, source: int, target: int) -> tuple[int, ...]:
        """Along both stems, to the node where they meet or through the mesh between routers."""
        egress, ingress = self._stem(source, target), self._stem(target, source)[::-1]
        for index, local in enumerate(egress):
            if local in ingress:
                return egress[:index] + ingress[ingress.index(local) :]
        return egress[:-1] + self.mesh_path(egress[-1], ingress[0]) + ingress[1:]

    def _stem(self, local: int, other: int) -> tuple[int, ...]:
        """The stem of a node towards `other`: into the mesh, or for a PE into its own crossbar."""
        node, peer = self._plan.nodes[local], self._plan.nodes[other]
        if node.kind == "pe" and peer.kind in ("xbar", "hbm_ctrl") and node.pe == peer.pe:
            return (local, *self._plan.stems[self._plan.xbar(node.pe)])
        return self._plan.stems[local]

    def mesh_path(self, source: int, target: int) -> tuple[int, ...]:
        """The routers of a cube on the way from one of them to another, both included."""
        if target not in self._hops_to:
            self._hops_to[target] = self._plan.grid.hops_to(target)
        # Neighbours are ordered W, E, N, S: the first that is nearer to the target obeys the rule
        # "columns before rows".
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
    """The nodes of the IO chain (host, pcie_ep, io_cpu, io_noc), in either direction."""
    step = 1 if first <= last else -1
    return range(first, last + step, step)
