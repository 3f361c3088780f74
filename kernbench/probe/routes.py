"""Routes of messages hop by hop, from the graph and the routing tables of the simulator itself.

Only the delays are read here; nothing is simulated. Names of components in other SIPs than SIP 0
start with `sipN.`.
"""

from collections.abc import Iterator
from itertools import pairwise

from kernbench.theory.bandwidths import slice_gbs
from kernbench.theory.hbm import least_read_latency_ps
from kernbench.theory.servers import Serialiser
from kernbench.theory.topology_file import TopologyFile
from kernbench.theory.transfers import TimedHop
from runtime.core.coordinates import PeCoordinates
from runtime.core.simtime import exact, ps_from_ns
from runtime.model.cube_plan import wire_ps
from runtime.model.graph import ChipGraph, Link
from runtime.model.routing import ChipRoutes
from runtime.model.schema import NodeKind, Topology
from runtime.model.sip_fabric import SipFabric

RouteEnd = tuple[int, int]
"""(SIP, node): an end of a route."""

LABELS: dict[frozenset[NodeKind], str] = {
    frozenset({"host", "pcie_ep"}): "PCIe",
    frozenset({"pcie_ep", "io_cpu"}): "IO_CPU link",
    frozenset({"io_cpu", "io_noc"}): "IO NoC link",
    frozenset({"ucie"}): "UCIe",
    frozenset({"router"}): "mesh link",
    frozenset({"router", "m_cpu"}): "M_CPU link",
    frozenset({"router", "sram"}): "SRAM link",
    frozenset({"router", "pe"}): "PE link",
    frozenset({"router", "xbar"}): "crossbar link",
    frozenset({"pe", "xbar"}): "crossbar link",
    frozenset({"xbar", "hbm_ctrl"}): "crossbar link",
}
"""Label of the link between two kinds of nodes."""


class TimedRoutes:
    """The routes of one topology: inside SIP 0, and from SIP 0 to other SIPs."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.graph = ChipGraph(topology)
        self.routes = ChipRoutes(self.graph)
        self.sips = SipFabric(topology)
        # Clocked routers take whole cycles, and their stages replace the overhead of a router.
        self._clocked = topology.noc.flow_control == "credits"
        file = TopologyFile(topology.values())
        self._slice_gbs, self._read_latency_ps = slice_gbs(file), least_read_latency_ps(file)

    def hops(self, source: RouteEnd, target: RouteEnd) -> tuple[TimedHop, ...]:
        """The hops between two nodes of any two SIPs, without entering `source` itself."""
        (from_sip, from_node), (to_sip, to_node) = source, target
        if from_sip == to_sip:
            return tuple(self._inside(from_sip, from_node, to_node))
        hops = list(self._inside(from_sip, from_node, self.graph.io_noc))
        for sip, neighbour in pairwise(self.sips.path(from_sip, to_sip)):
            hops.extend(self._crossing(sip, neighbour))
        return (*hops, *self._inside(to_sip, self.graph.io_noc, to_node))

    def dma(self, pe: PeCoordinates) -> TimedHop:
        """The start of a request in the DMA of a PE."""
        name = f"{self._pe_name(pe)}.dma"
        return TimedHop(name, ps_from_ns(self.topology.pe.dma.overhead_ns), wire_ps=0)

    def hbm(self, pe: PeCoordinates) -> Serialiser:
        """The HBM slice of a PE: all its pseudo channels."""
        hbm = self.topology.hbm
        name = self._name(pe.sip, self.graph.hbm(pe.cube, pe.pe))
        return Serialiser(
            bw_gbs=self._slice_gbs,
            channels=hbm.num_pcs,
            burst_bytes=hbm.burst_bytes,
            name=name,
            label="HBM slice",
            is_lower_bound=hbm.model == "banks",
        )

    def hbm_read(self, pe: PeCoordinates) -> TimedHop:
        """The wait of a read for its first byte in the HBM slice of a PE."""
        name = f"{self._name(pe.sip, self.graph.hbm(pe.cube, pe.pe))}.read"
        return TimedHop(name, self._read_latency_ps, wire_ps=0)

    def tcm(self, pe: PeCoordinates) -> Serialiser:
        """The port of the TCM of a PE."""
        gbs = exact(self.topology.pe.tcm.bw_gbs)
        return Serialiser(gbs, name=f"{self._pe_name(pe)}.tcm", label="TCM port")

    def _inside(self, sip: int, source: int, target: int) -> Iterator[TimedHop]:
        nodes = self.graph.nodes
        for near, far in pairwise(self.routes.route(source, target).nodes):
            link = self.graph.link(near, far)
            server = self._serialiser(sip, link)
            has_stages = self._clocked and nodes[far].kind == "router"
            overhead_ps = 0 if has_stages else nodes[far].overhead_ps
            yield TimedHop(self._name(sip, far), overhead_ps, link.wire_ps, server)

    def _serialiser(self, sip: int, link: Link) -> Serialiser | None:
        if link.bw_gbs is None:
            return None
        # A label does not depend on the direction: hence sets of kinds.
        ends = (self.graph.nodes[end] for end in (link.source, link.target))
        kinds: frozenset[NodeKind] = frozenset(node.kind for node in ends)
        name = f"{self._name(sip, link.source)}->{self._name(sip, link.target)}"
        return Serialiser(
            bw_gbs=exact(link.bw_gbs),
            name=name,
            label=LABELS[kinds],
            is_lower_bound=self._clocked,
        )

    def _crossing(self, sip: int, neighbour: int) -> Iterator[TimedHop]:
        """From the IO NoC of a SIP to that of its neighbour, through a switch if there is one."""
        topology, graph = self.topology, self.graph
        port_ps = ps_from_ns(topology.ucie.overhead_ns)
        spacing_ps = wire_ps(exact(topology.system.sips.spacing_mm), topology.ns_per_mm)
        out, into = f"{_prefix(sip)}io.ucie.sip{neighbour}", f"{_prefix(neighbour)}io.ucie.sip{sip}"
        bw_gbs = exact(topology.ucie.bw_gbs)
        # The IO NoC and its ports are one component: no wire between them, no bandwidth limit.
        yield TimedHop(out, port_ps, 0)
        if topology.system.sips.fabric == "switch":
            switch_ps = ps_from_ns(topology.system.components.switch.overhead_ns)
            to_switch = Serialiser(bw_gbs, name=f"{out}->switch", label="UCIe")
            # Two wires, each as long as the spacing: to the switch, and from it.
            yield TimedHop("switch", switch_ps, spacing_ps, to_switch)
            out = "switch"
        link = Serialiser(bw_gbs, name=f"{out}->{into}", label="UCIe")
        yield TimedHop(into, port_ps, spacing_ps, link)
        noc = graph.io_noc
        yield TimedHop(self._name(neighbour, noc), graph.nodes[noc].overhead_ps, 0)

    def _pe_name(self, pe: PeCoordinates) -> str:
        return self._name(pe.sip, self.graph.pe(pe.cube, pe.pe))

    def _name(self, sip: int, node: int) -> str:
        return _prefix(sip) + self.graph.nodes[node].name


def _prefix(sip: int) -> str:
    return f"sip{sip}." if sip else ""
