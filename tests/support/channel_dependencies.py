"""The channel dependency graph of a whole system, from the routes between all of its components.

Written for tests of the virtual layers: it follows every route hop by hop, without its
division into segments.
"""

from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise, product

from runtime.core.trace import IO_CHIPLET
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes, Route
from runtime.model.schema.topology_schema import Topology
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers

Channel = tuple[object, ...]
"""(SIP, first node, second node, layer) of a hop in a SIP; (from SIP, to SIP, layer) between two.
"""

Layering = tuple[Callable[[Route], tuple[int, ...]], Callable[[int, int, int], int]]
"""The layers of the hops of a route in a SIP; the layer of a crossing (source, at, target)."""


def virtual_layers(topology: Topology) -> Layering:
    graph, sips = ChipGraph(topology), SipFabric(topology)
    return VirtualLayers(graph, ChipRoutes(graph), sips).of, sips.layer


def no_layers(_topology: Topology) -> Layering:
    return lambda route: (0,) * (len(route.nodes) - 1), lambda source, at, target: 0


def cycle_of_channels(topology: Topology, layering: Layering) -> list[Channel]:
    """A cycle in the dependency graph, or nothing."""
    before: dict[Channel, set[Channel]] = {}
    graph, of_route = ChipGraph(topology), layering[0]
    routes, sips = ChipRoutes(graph), SipFabric(topology)
    ends = [node.index for node in graph.nodes if node.kind not in ("router", "ucie", "xbar")]

    def hops(source: int, target: int) -> list[Channel]:
        route = routes.route(source, target)
        layers = of_route(route)
        return [(*hop, layer) for hop, layer in zip(pairwise(route.nodes), layers, strict=True)]

    def depend(chain: list[Channel]) -> None:
        for channel, following in pairwise(chain):
            before.setdefault(following, set()).add(channel)

    inside = {pair: hops(*pair) for pair in product(ends, repeat=2)}
    for chain, sip in product(inside.values(), range(topology.sips)):
        depend([(sip, *hop) for hop in chain])
    in_cubes = [end for end in ends if graph.nodes[end].cube != IO_CHIPLET]
    for source, target in product(range(topology.sips), repeat=2):
        if source != target:
            links = _crossings(sips, layering[1], source, target)
            for end in in_cubes:
                egress, ingress = inside[end, graph.io_noc], inside[graph.io_noc, end]
                depend([(source, *egress[-1]), *links])
                depend([links[-1], (target, *ingress[0])])
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        cycle: list[Channel] = error.args[1]
        return cycle
    return []


def _crossings(
    sips: SipFabric, layer: Callable[[int, int, int], int], source: int, target: int
) -> list[Channel]:
    path = sips.path(source, target)
    return [(at, onward, layer(source, at, target)) for at, onward in pairwise(path)]
