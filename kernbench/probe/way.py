"""The way of a message, hop by hop: what each component and wire delays, and what serialises the bytes.

Everything is read from the graph and the routes that the simulation itself is built from; nothing here simulates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from runtime.core.coordinates import PeCoordinates
from runtime.core.simtime import PS_PER_NS, exact, ps_from_ns
from runtime.model.cube_plan import wire_ps
from runtime.model.graph import ChipGraph, Link
from runtime.model.routing import ChipRoutes, SipFabric
from runtime.model.schema import NodeKind, Topology

End = tuple[int, int]
"""(SIP, node): where a way starts or ends."""

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
"""What a reader calls the link between two kinds of nodes."""


@dataclass(frozen=True)
class Serialiser:
    """A link or a memory that takes bytes one after the other, at `bw_gbs` over all its `channels`.

    With several channels, consecutive bursts of `burst_bytes` lie on consecutive channels, and the first byte of a message
    starts a burst on the first one.
    """

    name: str
    label: str
    bw_gbs: Fraction
    channels: int = 1
    burst_bytes: int = 1

    def service_ps(self, nbytes: int) -> int:
        """The time that `nbytes` occupy it, on the channel with most of them, rounded up to the picosecond."""
        rounds, rest = divmod(nbytes, self.round_bytes)
        busiest_bytes = rounds * self.burst_bytes + min(rest, self.burst_bytes)
        return -(-busiest_bytes * PS_PER_NS * self.channels // self.bw_gbs)

    @property
    def round_bytes(self) -> int:
        """Bytes that give every channel one burst."""
        return self.burst_bytes * self.channels


@dataclass(frozen=True)
class Hop:
    """Into the component `node`: its overhead, the wire to it, and the link if it has a bandwidth."""

    node: str
    overhead_ps: int
    wire_ps: int
    link: Serialiser | None = None


Way = tuple[Hop, ...]


class Ways:
    """The ways of one topology, inside SIP 0 and from it to others; names in other SIPs start with `sipN.`."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.graph = ChipGraph(topology)
        self.routes = ChipRoutes(self.graph)
        self.sips = SipFabric(topology)

    def way(self, source: End, target: End) -> Way:
        """The hops between two nodes of any two SIPs, `source` itself not entered."""
        (from_sip, from_node), (to_sip, to_node) = source, target
        if from_sip == to_sip:
            return tuple(self._inside(from_sip, from_node, to_node))
        hops = list(self._inside(from_sip, from_node, self.graph.io_noc))
        for sip, neighbour in pairwise(self.sips.path(from_sip, to_sip)):
            hops.extend(self._crossing(sip, neighbour))
        return (*hops, *self._inside(to_sip, self.graph.io_noc, to_node))

    def dma(self, place: PeCoordinates) -> Hop:
        """The start of a request in the DMA of a PE."""
        name = self._name(place.sip, self.graph.pe(place.cube, place.pe))
        return Hop(f"{name}.dma", ps_from_ns(self.topology.pe.dma.overhead_ns), 0)

    def hbm(self, place: PeCoordinates) -> Serialiser:
        """The HBM slice of a PE: all its pseudo channels."""
        hbm = self.topology.hbm
        bw_gbs = hbm.num_pcs * exact(hbm.pc_bw_gbs) * exact(self.topology.cube.hbm_ctrl.efficiency)
        name = self._name(place.sip, self.graph.hbm(place.cube, place.pe))
        return Serialiser(name, "HBM slice", bw_gbs, hbm.num_pcs, hbm.burst_bytes)

    def tcm(self, place: PeCoordinates) -> Serialiser:
        """The port of the TCM of a PE."""
        name = self._name(place.sip, self.graph.pe(place.cube, place.pe))
        return Serialiser(f"{name}.tcm", "TCM port", exact(self.topology.pe.tcm.bw_gbs))

    def _inside(self, sip: int, source: int, target: int) -> Iterator[Hop]:
        nodes = self.graph.nodes
        for near, far in pairwise(self.routes.route(source, target).nodes):
            link = self.graph.link(near, far)
            yield Hop(
                self._name(sip, far),
                nodes[far].overhead_ps,
                link.wire_ps,
                self._serialiser(sip, link),
            )

    def _serialiser(self, sip: int, link: Link) -> Serialiser | None:
        if link.bw_gbs is None:
            return None
        kinds: frozenset[NodeKind] = frozenset(
            self.graph.nodes[end].kind for end in (link.source, link.target)
        )
        name = f"{self._name(sip, link.source)}->{self._name(sip, link.target)}"
        return Serialiser(name, LABELS[kinds], exact(link.bw_gbs))

    def _crossing(self, sip: int, neighbour: int) -> Iterator[Hop]:
        """From the IO NoC of a SIP into that of the next one."""
        topology = self.topology
        port_ps = ps_from_ns(topology.ucie.overhead_ns)
        spacing_ps = wire_ps(exact(topology.system.sips.spacing_mm), topology.ns_per_mm)
        out, into = f"{_prefix(sip)}io.ucie.sip{neighbour}", f"{_prefix(neighbour)}io.ucie.sip{sip}"
        bw_gbs = exact(topology.ucie.bw_gbs)
        yield Hop(out, port_ps, 0)
        if topology.system.sips.fabric == "switch":
            switch_ps = ps_from_ns(topology.system.components.switch.overhead_ns)
            yield Hop("switch", switch_ps, spacing_ps, Serialiser(f"{out}->switch", "UCIe", bw_gbs))
            out = "switch"
        yield Hop(into, port_ps, spacing_ps, Serialiser(f"{out}->{into}", "UCIe", bw_gbs))
        yield Hop(
            self._name(neighbour, self.graph.io_noc),
            self.graph.nodes[self.graph.io_noc].overhead_ps,
            0,
        )

    def _name(self, sip: int, node: int) -> str:
        return _prefix(sip) + self.graph.nodes[node].name


def _prefix(sip: int) -> str:
    return f"sip{sip}." if sip else ""
