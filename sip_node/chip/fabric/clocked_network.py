"""The clocked routers of one SIP and the links between them, built where a path first needs them.

Routers are the nodes that packets pass, from the IO NoC inwards: IO NoC, cube routers, crossbars.
A UCIe crossing is a part of the link between the routers at its ends: its ports only delay. The
links between the host and the IO_CPU keep calendars.
"""

from collections.abc import Iterator

from runtime.model.graph import ChipGraph
from runtime.model.routing import Stage
from sip_node.chip.fabric.cycle_queue import CycleQueue
from sip_node.chip.fabric.injection import Injection, Injector
from sip_node.chip.fabric.noc_clock import NocClock, Pipeline, pipeline
from sip_node.chip.fabric.router import Router
from sip_node.chip.fabric.stalled import StalledPacket, stalled_packets
from sip_node.chip.fabric.virtual_channels import (
    InputPort,
    InputVc,
    OutputPort,
    OutputVc,
    VirtualNetwork,
)

_ROUTERS = ("io_noc", "router", "xbar")
_CALENDARS = ("host", "pcie_ep")
_LOCAL = 1 << 9
"""More than twice the SIPs of a system: a router has an entrance and an exit for each of them."""


class HopTiming:
    """The times of hops in cycles, which follow from the graph."""

    def __init__(self, graph: ChipGraph) -> None:
        self._graph, self.clock = graph, NocClock(graph.topology.noc)
        self._mesh_stages = graph.topology.noc.router_stages

    def ends(self, stage: Stage) -> tuple[int, int]:
        """The nodes at the ends of a link: for a crossing the nodes behind the ports."""
        link = self._graph.links[stage.link]
        return self._behind(link.source), self._behind(link.target)

    def is_router(self, node: int) -> bool:
        """Whether a node is a clocked router."""
        return self._graph.nodes[node].kind in _ROUTERS

    def has_calendar(self, index: int) -> bool:
        """Whether a link is one between the host and the IO_CPU."""
        link, nodes = self._graph.links[index], self._graph.nodes
        return nodes[link.source].kind in _CALENDARS or nodes[link.target].kind in _CALENDARS

    def pipeline(self, node: int) -> Pipeline:
        """The stages of a router; those of other nodes are their overhead."""
        if self._graph.nodes[node].kind == "router":
            return pipeline(self._mesh_stages)
        return pipeline(self.clock.delay_cycles(self._graph.nodes[node].overhead_ps))

    def wire_cycles(self, stage: Stage) -> int:
        """The delay of a link: its wires, its UCIe ports, the overhead of a component at its end.

        The overhead of a router is its pipeline.
        """
        target = self.ends(stage)[1]
        overhead_ps = self._graph.nodes[target].overhead_ps if self.is_router(target) else 0
        return self.clock.delay_cycles(stage.pre_ps + stage.post_ps - overhead_ps)

    def flit_cycles(self, stage: Stage) -> int:
        """The cycles for which a flit occupies a link."""
        bw_gbs = self._graph.links[stage.link].bw_gbs
        assert bw_gbs is not None
        return self.clock.flit_cycles(bw_gbs)

    def latency_ps(self, stages: tuple[Stage, ...]) -> int:
        """The time from a clock edge to the arrival of a packet of one flit, without contention."""
        delay_ps = sum(
            stage.pre_ps + stage.post_ps for stage in stages if self.has_calendar(stage.link)
        )
        clocked = [stage for stage in stages if not self.has_calendar(stage.link)]
        if not clocked:
            return delay_ps
        cycles = sum(self.wire_cycles(stage) + self.flit_cycles(stage) - 1 for stage in clocked)
        nodes = [*(self.ends(stage)[0] for stage in clocked), self.ends(clocked[-1])[1]]
        cycles += sum(sum(self.pipeline(node)) for node in nodes if self.is_router(node))
        # A router at an end has an entrance or an exit of its own.
        cycles += sum(self.is_router(node) for node in (nodes[0], nodes[-1]))
        return delay_ps + (cycles + 1) * self.clock.period_ps

    def _behind(self, node: int) -> int:
        return self._graph.behind(node) if self._graph.nodes[node].kind == "ucie" else node


class ClockedNetwork:
    """Routers, sources, links and their virtual networks, numbered by class and layer."""

    def __init__(self, graph: ChipGraph, timing: HopTiming, queue: CycleQueue) -> None:
        self._graph, self._timing, self._queue = graph, timing, queue
        self._noc = graph.topology.noc
        self._routers: dict[int, Router] = {}
        self._inputs: dict[int, InputPort] = {}
        self._injectors: dict[int, Injector] = {}
        self._injections: dict[tuple[int, int], Injection] = {}
        self._virtual: dict[tuple[int, int], VirtualNetwork] = {}
        self.ports: dict[int, OutputPort] = {}
        """The links that have been used, by index in the graph; then exits and entrances."""

    def link(self, stage: Stage, network: int) -> VirtualNetwork:
        """A virtual network of a link."""
        source, target = self._timing.ends(stage)
        link, timing = self._graph.links[stage.link], self._timing
        name = f"{self._graph.nodes[link.source].name}->{self._graph.nodes[link.target].name}"
        wire, flit = timing.wire_cycles(stage), timing.flit_cycles(stage)
        ends = (self._router(source), self._router(target))
        return self._network(stage.link, name, ends, (wire, flit), network)

    def exit(self, node: int, number: int, network: int) -> VirtualNetwork:
        """A virtual network of output `number` of a router to components of its own."""
        index, name = self._local(node, 2 * number), f"{self._graph.nodes[node].name}.exit{number}"
        return self._network(index, name, (self._router(node), None), (1, 1), network)

    def entrance(self, node: int, number: int, network: int) -> VirtualNetwork:
        """A virtual network of input `number` of a router from components of its own."""
        index = self._local(node, 2 * number + 1)
        name = f"{self._graph.nodes[node].name}.entrance{number}"
        return self._network(index, name, (None, self._router(node)), (1, 1), network)

    def injection(self, network: VirtualNetwork) -> Injection:
        """The queue of a source in front of one of its virtual networks."""
        key = (network.port.index, network.index)
        found = self._injections.get(key)
        if found is None:
            injector = self._injectors.get(network.port.index)
            if injector is None:
                injector = Injector(self._queue, network.port)
                self._injectors[network.port.index] = injector
            found = Injection(self._queue, injector, network, self._timing.clock)
            self._injections[key] = found
        return found

    def stalled(self, layers: int) -> Iterator[StalledPacket]:
        """The packets that stand still at the end of a run; `layers` are those of a class."""
        return stalled_packets(self._virtual.values(), self._injections.values(), layers)

    def _local(self, node: int, number: int) -> int:
        return len(self._graph.links) + node * _LOCAL + number

    def _router(self, node: int) -> Router | None:
        """The router at a node, None for a component."""
        if not self._timing.is_router(node):
            return None
        found = self._routers.get(node)
        if found is None:
            pipe = self._timing.pipeline(node)
            found = self._routers[node] = Router(self._graph.nodes[node].name, self._queue, pipe)
        return found

    def _network(
        self,
        index: int,
        name: str,
        ends: tuple[Router | None, Router | None],
        cycles: tuple[int, int],
        network: int,
    ) -> VirtualNetwork:
        found = self._virtual.get((index, network))
        if found is not None:
            return found
        source, target = ends
        (wire, flit_cycles), leave = cycles, 0 if source is None else source.pipeline.leave
        port = self.ports.get(index)
        if port is None:
            delay = leave + wire + flit_cycles - 1
            units = (self._noc.flit_bytes, self._queue.period_ps)
            port = OutputPort(name, index, flit_cycles, delay, units)
            self.ports[index] = port
        first = network * self._noc.vcs
        vcs = [self._channel(port, target, first + vc, wire) for vc in range(self._noc.vcs)]
        found = self._virtual[index, network] = VirtualNetwork(self._queue, port, network, vcs)
        return found

    def _channel(self, port: OutputPort, target: Router | None, vc: int, wire: int) -> OutputVc:
        """Both ends of a virtual channel."""
        if target is None:
            return OutputVc(None, 0)
        entrance = self._inputs.setdefault(port.index, InputPort(port.index))
        credit_cycles = target.pipeline.leave + wire
        buffer = InputVc(self._queue, target, entrance, vc, target.pipeline, credit_cycles)
        # A credit makes a round of a flit's way and its own. A wire of one cycle is the base of
        # `buffer_flits`; a longer or slower link has room for what its longer round adds, so that
        # the distance costs time and no bandwidth.
        longer = 2 * (wire - 1) + port.flit_cycles - 1
        depth = self._noc.buffer_flits + -(-longer // port.flit_cycles)
        buffer.feeder = OutputVc(buffer, depth)
        return buffer.feeder
