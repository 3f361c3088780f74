"""Virtual layers: which routes may share buffers, so that no cycle of full buffers can form.

With finite buffers a packet keeps the buffer behind it until it gets the next one. A network cannot
deadlock if its *channel dependency graph* is acyclic (Dally & Seitz, 1987): a vertex is the buffer
at the end of a link, an edge leads from a buffer to the next one of some route. With one buffer a
link, the routes round the HBM hole form a cycle, and those through several cubes as well. So every
link has a buffer for each of a few layers, and every hop of a route has a layer.

A route consists of segments. All but the last head for a port, the last leads to a component:

    source ----> port E =====> port W ----> port S =====> port N ----> target
    |------ heading E -----------||------ heading S --------||- arrival -|

Segments of one class (heading E, W, N or S; or arrival at one router) form an in-tree of shortest
paths, which has no cycle. Between cubes columns come before rows, so the segments of a route are
heading E or W, then N or S, then an arrival. A layer for each class would therefore be enough.
Greedy merging makes few layers of them: a class gets the lowest layer in which the graph is acyclic
although every class that follows has a layer of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from runtime.core.trace import IO_CHIPLET
from runtime.model.cube_plan import SIDES
from runtime.model.dependencies import Dependencies, reachable_ends
from runtime.model.graph import OPPOSITE, ChipGraph
from runtime.model.routing import ChipRoutes, Route
from runtime.model.schema.quantities import Side
from runtime.model.sip_fabric import SipFabric

_ALONG_ROWS: tuple[Side, ...] = ("E", "W")
_ALONG_COLUMNS: tuple[Side, ...] = ("N", "S")


@dataclass(frozen=True)
class _SegmentClass:
    """The segments to router `target` of a cube: heading for its port, or None for arrivals.

    `paths` are the hops of all of them, with the side by which the segment enters the cube, or None
    for a segment that begins in the cube.
    """

    heading: Side | None
    target: int
    paths: tuple[tuple[Side | None, tuple[tuple[int, int], ...]], ...]


class VirtualLayers:
    """The layers of all routes inside a SIP; `count` includes those of the links between SIPs.

    They follow from the plan of a cube and the sides on which cubes have neighbours.
    """

    def __init__(self, graph: ChipGraph, routes: ChipRoutes, sips: SipFabric) -> None:
        self._graph, self._plan, self._routes = graph, graph.plan, routes
        self._between_sips = sips.sips > 1
        self._sides_of_cube: list[tuple[Side, ...]] = [
            tuple(side for side in SIDES if graph.beside(cube, side) is not None)
            for cube in range(graph.topology.cubes)
        ]
        used = {side for sides in self._sides_of_cube for side in sides}
        # Rows before columns here: of all orders that were tried it gives the fewest layers.
        self._sides: tuple[Side, ...] = tuple(
            side for side in (*_ALONG_ROWS, *_ALONG_COLUMNS) if side in used
        )
        self._classes = tuple(self._segment_classes())
        layers = _merged([each.heading for each in self._classes], self._is_acyclic)
        self._layer = {
            (each.heading, each.target): layer
            for each, layer in zip(self._classes, layers, strict=True)
        }
        self.count = max(sips.layers, 1 + max(layers))

    def of(self, route: Route) -> tuple[int, ...]:
        """The layer of each hop of a route, in the order of `pairwise(route.nodes)`.

        The packet has that layer in the buffer at the end of the hop.
        """
        nodes, layers = self._graph.nodes, list[int]()
        layer = self._of_last_segment(route.target)
        for after, before in pairwise(reversed(route.nodes)):
            # Backwards: the hop from a port into a cube ends a segment that heads for a port.
            if nodes[before].kind == "ucie" and nodes[after].kind == "router":
                layer = self._of_heading(OPPOSITE[self._side_of_port[before]])
            layers.append(layer)
        return tuple(reversed(layers))

    def _of_last_segment(self, target: int) -> int:
        cube = self._graph.nodes[target].cube
        if cube == IO_CHIPLET:
            return self._of_heading(self._graph.edge)
        # The last node of a stem is its router, at which the arrivals of the component end.
        return self._layer[None, self._plan.stems[target - self._graph.cube_base(cube)][-1]]

    def _of_heading(self, side: Side) -> int:
        # From the IO chiplet into a row or column of one cube nothing heads: any layer will do.
        return self._layer.get((side, self._plan.ports[side].router), 0)

    @cached_property
    def _side_of_port(self) -> Mapping[int, Side]:
        return {
            self._graph.port(cube, side): side
            for cube, sides in enumerate(self._sides_of_cube)
            for side in sides
        }

    def _segment_classes(self) -> Iterator[_SegmentClass]:
        """Every class: headings, then arrivals by router."""
        components = range(self._plan.routers, len(self._plan.nodes))
        attached = sorted({self._plan.stems[local][-1] for local in components})
        for heading in self._sides:
            yield self._segment_class(heading, self._plan.ports[heading].router, attached)
        for router in attached:
            yield self._segment_class(None, router, attached)

    def _segment_class(
        self, heading: Side | None, target: int, attached: Sequence[int]
    ) -> _SegmentClass:
        starts: list[tuple[Side | None, int]] = [(None, router) for router in attached]
        starts.extend((side, self._plan.ports[side].router) for side in self._entries(heading))
        return _SegmentClass(
            heading,
            target,
            tuple(
                (side, tuple(pairwise(self._routes.mesh_path(start, target))))
                for side, start in starts
            ),
        )

    def _entries(self, heading: Side | None) -> tuple[Side, ...]:
        """The sides by which a segment of a class may enter the cube."""
        if heading is None:
            return self._sides
        # Columns before rows: segments along a column may follow segments along a row.
        turns = _ALONG_ROWS if heading in _ALONG_COLUMNS else ()
        return tuple(side for side in self._sides if side in (OPPOSITE[heading], *turns))

    def _is_acyclic(self, layers: Sequence[int]) -> bool:
        """Whether the dependency graph of a SIP and of the others beyond its IO chiplet is acyclic.

        First inside a cube: this also gives the ports that depend on each side of entry. Then
        between the ports of all cubes, which are few.
        """
        inside = reachable_ends(self._inside_cube(layers))
        return inside is not None and reachable_ends(self._between_cubes(inside)) is not None

    def _inside_cube(self, layers: Sequence[int]) -> Dependencies:
        """Dependencies from sides of entry over (hop, layer) to the headings for ports."""
        after: Dependencies = {}
        # A packet holds the buffer of one hop while it waits for that of the next hop of its route:
        # an edge of the channel dependency graph (Dally & Seitz, 1987).
        for each, layer in zip(self._classes, layers, strict=True):
            for entry, hops in each.paths:
                chain: list[object] = [] if entry is None else [("in", entry)]
                chain += [(hop, layer) for hop in hops]
                if each.heading is not None:
                    chain.append(each.heading)
                for vertex, following in pairwise(chain):
                    after.setdefault(vertex, set()).add(following)
        return after

    def _between_cubes(self, inside: Mapping[object, frozenset[object]]) -> Dependencies:
        """Dependencies between the egress ports (cube, side) of a SIP.

        All other SIPs are one vertex. That is enough: the links between SIPs have no cycle of their
        own (`SipFabric.layer`), and every SIP has the same routes.
        """
        others = IO_CHIPLET
        after: Dependencies = {others: set()}
        for cube, sides in enumerate(self._sides_of_cube):
            for side in sides:
                beside = self._graph.beside(cube, side)
                if beside is not None and beside != IO_CHIPLET:
                    entry = "in", OPPOSITE[side]
                    after[cube, side] = self._egress(beside, inside.get(entry, frozenset()))
                elif self._between_sips:
                    after[cube, side] = {others}
                    after[others] |= self._egress(cube, inside.get(("in", side), frozenset()))
        return after

    def _egress(self, cube: int, headings: frozenset[object]) -> set[object]:
        return {(cube, side) for side in self._sides_of_cube[cube] if side in headings}


def _merged(
    headings: Sequence[Side | None], is_acyclic: Callable[[Sequence[int]], bool]
) -> list[int]:
    """The layer of every class: headings one by one, then all arrivals together if they fit."""
    # Every class begins with a layer of its own, below 0: no choice leaves the rest without one.
    layers = [-1 - index for index in range(len(headings))]
    assert is_acyclic(layers), "columns come before rows between cubes"
    groups = [[index] for index, heading in enumerate(headings) if heading is not None]
    arrivals = [index for index, heading in enumerate(headings) if heading is None]
    for group in (*groups, arrivals):
        layers = _placed(group, layers, is_acyclic)
    return layers


def _placed(
    group: Sequence[int], layers: Sequence[int], is_acyclic: Callable[[Sequence[int]], bool]
) -> list[int]:
    """The layers with that of a group of classes as low as possible."""
    # The lowest layer first, so that buffers are shared as far as possible: each layer is a buffer
    # of every link (virtual channels, W. J. Dally, Virtual-channel flow control, 1992).
    for layer in range(max(-1, *layers) + 2):
        trial = [layer if index in group else given for index, given in enumerate(layers)]
        if is_acyclic(trial):
            return trial
    # A single class always fits in the layer above all others; a group need not.
    for index in group:
        layers = _placed([index], layers, is_acyclic)
    return list(layers)
