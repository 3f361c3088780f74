"""The paths of packets through the clocked routers of one SIP, each constructed on its first use.

Requests and replies have virtual networks of their own, since a memory answers a request with a
reply: a reply never waits for a request. Each class has as many layers as the routes need.
"""

from typing import NamedTuple

from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes, Route
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.fabric.clocked_network import ClockedNetwork, HopTiming
from sip_node.chip.fabric.packet import REQUESTS, FabricTransfer
from sip_node.chip.fabric.worm import PathPlan

_ANYWHERE = 0


class PathKey(NamedTuple):
    """What packets of one path share.

    `neighbour` is the SIP that they come from or go to by the IO NoC, which has an input and an
    output for each.
    """

    origin: int
    target: int
    neighbour: int
    is_request: bool


class CreditedPaths:
    """The paths of SIP `sip`."""

    def __init__(
        self,
        graph: ChipGraph,
        routes: ChipRoutes,
        layers: VirtualLayers,
        sips: SipFabric,
        sip: int,
    ) -> None:
        self._graph, self._routes, self._layers = graph, routes, layers
        self._sips, self._sip = sips, sip
        self.timing = HopTiming(graph)

    def key(self, transfer: FabricTransfer, origin: int) -> PathKey:
        """The path of a packet from node `origin` to its node, or to the IO NoC on its way out."""
        target = transfer.node if transfer.sip == self._sip else self._graph.io_noc
        neighbour = self._neighbour(transfer, origin, target)
        return PathKey(origin, target, neighbour, transfer.kind in REQUESTS)

    def latency_ps(self, source: int, target: int) -> int:
        """The time of a packet of one flit that starts at a clock edge, without contention."""
        return self.timing.latency_ps(self._routes.route(source, target).stages)

    def plan(self, key: PathKey, network: ClockedNetwork) -> PathPlan:
        """The path, with the virtual networks of `network`."""
        route, timing = self._routes.route(key.origin, key.target), self.timing
        stages = route.stages
        latency_ps, routing = timing.latency_and_routing(stages)
        clocked = timing.clocked(stages)
        if not clocked:
            return PathPlan(
                target=key.target,
                latency_ps=latency_ps,
                before=stages,
                networks=(),
                routing=(),
                after=(),
            )
        first, end = clocked[0], clocked[-1] + 1
        layers = self._layers_of(route)
        base = 0 if key.is_request else self._layers.count
        networks = [
            network.link(stage, base + layer)
            for stage, layer in zip(stages[first:end], layers[first:end], strict=True)
        ]
        begin, last = timing.link(stages[first]).source, timing.link(stages[end - 1]).target
        if timing.is_router(begin):
            networks.insert(0, network.entrance(begin, key.neighbour, base + layers[first]))
        if timing.is_router(last):
            networks.append(network.exit(last, key.neighbour, base + layers[end - 1]))
        return PathPlan(
            target=key.target,
            latency_ps=latency_ps,
            before=stages[:first],
            networks=tuple(networks),
            # The first link is that of the source.
            routing=(0, *routing),
            after=stages[end:],
        )

    def _neighbour(self, transfer: FabricTransfer, origin: int, target: int) -> int:
        gateway = self._graph.io_noc
        # Through a switch there is one input and one output.
        if self._graph.topology.system.sips.fabric == "switch":
            return _ANYWHERE
        if target == gateway and transfer.sip != self._sip:
            return self._sips.next_hop(self._sip, transfer.sip)
        if origin == gateway and transfer.source_sip != self._sip:
            return self._sips.path(transfer.source_sip, self._sip)[-2]
        return _ANYWHERE

    def _layers_of(self, route: Route) -> list[int]:
        """The layer of each stage: that of the hop into the node at its end."""
        ends = dict(zip(route.nodes[1:], self._layers.of(route), strict=True))
        calendar = self.timing.has_calendar
        return [
            0 if calendar(stage.link) else ends[self.timing.link(stage).target]
            for stage in route.stages
        ]
