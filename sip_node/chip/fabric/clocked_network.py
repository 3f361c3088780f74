"""The clocked routers of one SIP and the links between them, built where a path first needs them.

Routers are the nodes that packets pass, from the IO NoC inwards: IO NoC, cube routers, crossbars.
A UCIe crossing is a part of the link between the routers at its ends: its ports only delay. The
links between the host and the IO_CPU keep calendars.
"""

from runtime.model.graph import ChipGraph
from runtime.model.routing import Stage
from sip_node.chip.fabric.noc_clock import NocClock, Pipeline, pipeline
from sip_node.chip.fabric.router import Router
from sip_node.chip.fabric.router_elements import RouterElements
from sip_node.chip.fabric.virtual_channels import OutputPort, VirtualNetwork

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
    """Routers and the virtual networks of links, numbered by class and layer."""

    def __init__(self, graph: ChipGraph, timing: HopTiming, elements: RouterElements) -> None:
        self._graph, self._timing, self._elements = graph, timing, elements
        self._noc = graph.topology.noc
        self._routers: dict[int, Router] = {}
        self._virtual: dict[tuple[int, int], VirtualNetwork] = {}
        self.ports: dict[int, OutputPort] = {}
        """The links that have been used, by index in the graph; then exits and entrances."""

    def link(self, stage: Stage, network: int) -> VirtualNetwork:
        """A virtual network of a link."""
        source, target = self._timing.ends(stage)
        link, timing = self._graph.links[stage.link], self._timing
        name = f"{self._graph.nodes[link.source].name}->{self._graph.nodes[link.target].name}"
        wire, flit = timing.wire_cycles(stage), timing.flit_cycles(stage)
        return self._network(stage.link, name, (source, target), (wire, flit), network)

    def exit(self, node: int, number: int, network: int) -> VirtualNetwork:
        """A virtual network of output `number` of a router to components of its own."""
        index, name = self._local(node, 2 * number), f"{self._graph.nodes[node].name}.exit{number}"
        return self._network(index, name, (node, None), (1, 1), network)

    def entrance(self, node: int, number: int, network: int) -> VirtualNetwork:
        """A virtual network of input `number` of a router from components of its own."""
        index = self._local(node, 2 * number + 1)
        name = f"{self._graph.nodes[node].name}.entrance{number}"
        return self._network(index, name, (None, node), (1, 1), network)

    def _local(self, node: int, number: int) -> int:
        return len(self._graph.links) + node * _LOCAL + number

    def _router(self, node: int | None) -> Router | None:
        """The router at a node, None for a component."""
        if node is None or not self._timing.is_router(node):
            return None
        found = self._routers.get(node)
        if found is None:
            found = self._routers[node] = self._elements.router(self._timing.pipeline(node))
        return found

    def _network(
        self,
        index: int,
        name: str,
        ends: tuple[int | None, int | None],
        cycles: tuple[int, int],
        network: int,
    ) -> VirtualNetwork:
        found = self._virtual.get((index, network))
        if found is not None:
            return found
        (source, target), (wire, flit_cycles) = map(self._router, ends), cycles
        port = self.ports.get(index)
        if port is None:
            leave = 0 if source is None else source.pipeline.leave
            delay = leave + wire + flit_cycles - 1
            port = self._elements.port(name, index, source, flit_cycles, delay)
            self.ports[index] = port
        # A credit makes a round of a flit's way and its own. A wire of one cycle is the base of
        # `buffer_flits`; a longer or slower link has room for what its longer round adds, so that
        # the distance costs time and no bandwidth.
        longer = 2 * (wire - 1) + flit_cycles - 1
        depth = self._noc.buffer_flits + -(-longer // flit_cycles)
        found = self._elements.network(port, network, self._noc.vcs, target, depth, wire)
        self._virtual[index, network] = found
        return found
