"""The clocked routers of one SIP and the links between them, built where a path first needs them.

Routers are the nodes that packets pass, from the IO NoC inwards: IO NoC, cube routers, crossbars.
A UCIe crossing is a part of the link between the routers at its ends: its ports only delay. The
links between the host and the IO_CPU keep calendars.

The paths of packets are constructed on their first use. Requests and replies have virtual networks
of their own, since a memory answers a request with a reply: a reply never waits for a request. Each
class has as many layers as the routes need.
"""

from collections.abc import Iterator
from typing import NamedTuple

from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes, Route, Stage
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers
from sip_node.chip.fabric.clocked.cycle_queue import CycleQueue
from sip_node.chip.fabric.clocked.injection import Injection, Injector
from sip_node.chip.fabric.clocked.router import Router
from sip_node.chip.fabric.clocked.stalled import ChannelKey, ChannelState, SourceState
from sip_node.chip.fabric.clocked.virtual_channels import (
    InputPort,
    OutputPort,
    VirtualChannel,
    VirtualNetwork,
)
from sip_node.chip.fabric.clocked.worm import NocClock, PathPlan, Pipeline, pipeline
from sip_node.chip.fabric.packet import REQUESTS, FabricTransfer
from sip_node.chip.records.link_loads import LinkLoads
from sip_node.kernel.component import Component

_ANYWHERE = 0
# Nodes in which packets of several inputs compete for an output.
_ROUTERS = ("io_noc", "router", "xbar")
# Nothing pushes back on the links of the host: the IO_CPU accepts every command, and the host every
# answer. So routers there would have no full buffer.
_CALENDARS = ("host", "pcie_ep")
_LOCAL = 1 << 9
"""More than twice the SIPs of a system: a router has an entrance and an exit for each of them."""


class LinkTiming(NamedTuple):
    """A link between routers, or a router and a component, with its times in cycles.

    `source` and `target` are the nodes at its ends: for a UCIe crossing those behind the ports.
    `wire` is the delay of its wires, its UCIe ports, and the overhead of a component at its end;
    the overhead of a router is its pipeline. A flit occupies it for `flit` cycles.
    """

    source: int
    target: int
    wire: int
    flit: int


class HopTiming:
    """The times of hops in cycles, which follow from the graph; each is computed once."""

    def __init__(self, graph: ChipGraph) -> None:
        self._graph, self.clock = graph, NocClock(graph.topology.noc)
        self._mesh_stages = graph.topology.noc.router_stages
        nodes = graph.nodes
        self._routers = {node.index for node in nodes if node.kind in _ROUTERS}
        self._calendars = {
            link.index
            for link in graph.links
            if nodes[link.source].kind in _CALENDARS or nodes[link.target].kind in _CALENDARS
        }
        self._links: dict[int, LinkTiming] = {}
        self._pipelines: dict[int, Pipeline] = {}

    def link(self, stage: Stage) -> LinkTiming:
        """The clocked link of a stage."""
        timing = self._links.get(stage.link)
        if timing is None:
            timing = self._links[stage.link] = self._clocked(stage)
        return timing

    def is_router(self, node: int) -> bool:
        """Whether a node is a clocked router."""
        return node in self._routers

    def has_calendar(self, index: int) -> bool:
        """Whether a link is one between the host and the IO_CPU."""
        return index in self._calendars

    def clocked(self, stages: tuple[Stage, ...]) -> list[int]:
        """The indices of the stages whose links have no calendars."""
        return [index for index, stage in enumerate(stages) if stage.link not in self._calendars]

    def pipeline(self, node: int) -> Pipeline:
        """The stages of a router; those of other nodes are their overhead."""
        timing = self._pipelines.get(node)
        if timing is None:
            stages = self._mesh_stages
            if self._graph.nodes[node].kind != "router":
                stages = self.clock.delay_cycles(self._graph.nodes[node].overhead_ps)
            timing = self._pipelines[node] = pipeline(stages)
        return timing

    def latency_ps(self, stages: tuple[Stage, ...]) -> int:
        """The time from a clock edge to the arrival of a packet of one flit, without contention."""
        return self.latency_and_routing(stages)[0]

    def latency_and_routing(self, stages: tuple[Stage, ...]) -> tuple[int, tuple[int, ...]]:
        """`latency_ps`, and the cycles for which each router of the path routes a head."""
        delay_ps = sum(
            stage.pre_ps + stage.post_ps for stage in stages if stage.link in self._calendars
        )
        clocked = [self.link(stage) for stage in stages if stage.link not in self._calendars]
        if not clocked:
            return delay_ps, ()
        nodes, routing = [clocked[0].source, *[link.target for link in clocked]], list[int]()
        cycles = sum([link.wire + link.flit - 1 for link in clocked])
        for node in nodes:
            if node in self._routers:
                stages_of = self.pipeline(node)
                routing.append(stages_of.route)
                cycles += stages_of.allocate + stages_of.leave
        # A router at an end has an entrance or an exit of its own.
        cycles += sum(routing) + self.is_router(nodes[0]) + self.is_router(nodes[-1])
        return delay_ps + (cycles + 1) * self.clock.period_ps, tuple(routing)

    def _clocked(self, stage: Stage) -> LinkTiming:
        link, clock = self._graph.links[stage.link], self.clock
        source, target = self._behind(link.source), self._behind(link.target)
        # The overhead of a router is counted as the stages of its pipeline, not as a delay of the
        # link.
        overhead_ps = self._graph.nodes[target].overhead_ps if self.is_router(target) else 0
        assert link.bw_gbs is not None, f"link {link.index} only delays"
        return LinkTiming(
            source=source,
            target=target,
            wire=clock.delay_cycles(stage.pre_ps + stage.post_ps - overhead_ps),
            flit=clock.flit_cycles(link.bw_gbs),
        )

    def _behind(self, node: int) -> int:
        return self._graph.behind(node) if self._graph.nodes[node].kind == "ucie" else node


class ClockedNetwork:
    """Routers and the virtual networks of links, numbered by class and layer.

    The last flits of packets leave it by events of `fabric`, on whose engine it has its own.
    """

    def __init__(self, graph: ChipGraph, timing: HopTiming, fabric: Component) -> None:
        self._graph, self._timing, self._fabric = graph, timing, fabric
        self._queue = CycleQueue(fabric.engine, timing.clock.period_ps)
        self._noc = graph.topology.noc
        self._routers: dict[int, Router] = {}
        self._inputs: dict[int, InputPort] = {}
        self._virtual: dict[tuple[int, int], VirtualNetwork] = {}
        self._injectors: dict[int, Injector] = {}
        self._injections: dict[tuple[int, int], Injection] = {}
        self.ports: dict[int, OutputPort] = {}
        """The links that have been used, by index in the graph; then exits and entrances."""
        self.loads: LinkLoads | None = None
        """Takes the loads of links, in a run with records."""

    def link(self, stage: Stage, network: int) -> VirtualNetwork:
        """A virtual network of a link."""
        link, clocked = self._graph.links[stage.link], self._timing.link(stage)
        name = f"{self._graph.nodes[link.source].name}->{self._graph.nodes[link.target].name}"
        ends, cycles = (clocked.source, clocked.target), (clocked.wire, clocked.flit)
        return self._network(stage.link, name, ends, cycles, network)

    def exit(self, node: int, number: int, network: int) -> VirtualNetwork:
        """A virtual network of output `number` of a router to components of its own."""
        index, name = self._local(node, 2 * number), f"{self._graph.nodes[node].name}.exit{number}"
        return self._network(index, name, (node, None), (1, 1), network)

    def entrance(self, node: int, number: int, network: int) -> VirtualNetwork:
        """A virtual network of input `number` of a router from components of its own."""
        index = self._local(node, 2 * number + 1)
        name = f"{self._graph.nodes[node].name}.entrance{number}"
        return self._network(index, name, (None, node), (1, 1), network)

    def injection(self, network: VirtualNetwork) -> Injection:
        """The queue of a source in front of one of its virtual networks."""
        port = network.port
        injector = self._injectors.get(port.index)
        if injector is None:
            injector = self._injectors[port.index] = Injector(self._queue, port, self._fabric)
        key = port.index, network.index
        if key not in self._injections:
            self._injections[key] = Injection(injector, network, self._timing.clock)
        return self._injections[key]

    def channels(self) -> Iterator[ChannelState]:
        """The state of every virtual channel."""
        keys = {vc: key for network in self._virtual.values() for vc, key in _keys(network)}
        for network in self._virtual.values():
            for vc, key in _keys(network):
                yield ChannelState(
                    key=key,
                    link=network.port.name,
                    is_exit=not vc.depth,
                    packet=None if vc.worm is None else vc.worm.packet,
                    held=None if vc.held is None else keys[vc.held],
                    needed=() if vc.worm is None else _keys_of(vc.network),
                )

    def sources(self) -> Iterator[SourceState]:
        """The packets that wait at each source, by virtual network."""
        for injection in self._injections.values():
            first = [] if injection.worm is None else [injection.worm]
            packets = tuple(worm.packet for worm in (*first, *injection.waiting))
            yield SourceState(packets, _keys_of(injection.network))

    def _local(self, node: int, number: int) -> int:
        return len(self._graph.links) + node * _LOCAL + number

    def _router(self, node: int | None) -> Router | None:
        """The router at a node, None for a component."""
        if node is None or not self._timing.is_router(node):
            return None
        router = self._routers.get(node)
        if router is None:
            router = self._routers[node] = Router(self._queue, self._timing.pipeline(node))
        return router

    def _network(
        self,
        index: int,
        name: str,
        ends: tuple[int | None, int | None],
        cycles: tuple[int, int],
        network: int,
    ) -> VirtualNetwork:
        virtual = self._virtual.get((index, network))
        if virtual is not None:
            return virtual
        (source, target), (wire, flit_cycles) = map(self._router, ends), cycles
        port = self.ports.get(index)
        if port is None:
            port = self.ports[index] = self._port(index, name, source, cycles)
        exit_to = self._fabric if target is None else None
        virtual = VirtualNetwork(self._queue, port, network, self._noc.vcs, exit_to)
        if target is not None:
            # A credit makes a round of a flit's way and its own. A wire of one cycle is the base of
            # `buffer_flits`; a longer or slower link has room for what its longer round adds, so
            # that the distance costs time and no bandwidth.
            longer = 2 * (wire - 1) + flit_cycles - 1
            depth = self._noc.buffer_flits + -(-longer // flit_cycles)
            self._connect(virtual, target, depth, wire)
        self._virtual[index, network] = virtual
        return virtual

    def _port(
        self, index: int, name: str, source: Router | None, cycles: tuple[int, int]
    ) -> OutputPort:
        """An output of a router, or of a component, and the link behind it."""
        wire, flit_cycles = cycles
        delay = (0 if source is None else source.leave) + wire + flit_cycles - 1
        port = OutputPort(name, index, flit_cycles, delay, self._timing.clock)
        if source is not None:
            source.add_output(port)
        # Of a router's exits and entrances to components, which are no links, nothing.
        if self.loads is not None and index < len(self._graph.links):
            self.loads.watch("link", port)
        return port

    def _connect(self, network: VirtualNetwork, target: Router, depth: int, wire: int) -> None:
        """Give the channels of a network buffers at a router, to which a credit has a `wire`."""
        index, channels, credit_cycles = network.port.index, network.channels, target.leave + wire
        entrance = self._inputs.get(index)
        if entrance is None:
            entrance = self._inputs[index] = target.input(index)
        for number, channel in enumerate(channels):
            place = network.index * len(channels) + number
            channel.connect(target, entrance, place, depth, credit_cycles)


def _keys(network: VirtualNetwork) -> Iterator[tuple[VirtualChannel, ChannelKey]]:
    for number, vc in enumerate(network.channels):
        yield vc, (network.port.index, network.index, number)


def _keys_of(network: VirtualNetwork) -> tuple[ChannelKey, ...]:
    return tuple(key for _, key in _keys(network))


class PathKey(NamedTuple):
    """The key of a path, which packets with equal keys share.

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
        self, graph: ChipGraph, routes: ChipRoutes, layers: VirtualLayers, sips: SipFabric, sip: int
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
        # A memory whose replies cannot leave accepts no request. If replies could wait behind these
        # requests, neither would move (protocol deadlock; Dally & Towles, chapter 14).
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
