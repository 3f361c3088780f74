"""The graph of one SIP: nodes that delay, directed links that serialise.

Nodes and links are those of the plan of all SIPs (`sip_plan.SipPlan`), with the times and the
bandwidths of one SIP. SIPs differ by `overrides` only; without them all share one graph. The links
between SIPs are in `sip_fabric.SipFabric`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from runtime.core.simtime import ps_from_ns
from runtime.model.parts.down_parts import DownParts
from runtime.model.parts.overrides import parts_of, with_part_values
from runtime.model.schema.topology_schema import NodeKind, PartValue, Topology
from runtime.model.sip_plan import OPPOSITE, PlannedNode, SipPlan

__all__ = ["OPPOSITE", "ChipGraph", "Link", "Node"]

_OVERHEADS: Mapping[NodeKind, str] = {
    "host": "host.overhead_ns",
    "pcie_ep": "sip.io_chiplet.pcie_ep.overhead_ns",
    "io_cpu": "sip.io_chiplet.io_cpu.overhead_ns",
    "io_noc": "sip.io_chiplet.noc.overhead_ns",
    "ucie": "ucie.overhead_ns",
    "m_cpu": "cube.m_cpu.overhead_ns",
    "router": "cube.noc.router_overhead_ns",
    "xbar": "xbar.overhead_ns",
    "hbm_ctrl": "cube.hbm_ctrl.overhead_ns",
    "sram": "cube.sram.overhead_ns",
}
"""The key of the time to enter a component. A PE has none: the DMA behind its port charges it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A component that messages pass or end at; entering it costs `overhead_ps`.

    `cube` is `IO_CHIPLET` outside the cubes, `pe` is `NO_PE` for a node that belongs to no PE. The
    position is that of its `PlannedNode`.
    """

    index: int
    kind: NodeKind
    name: str
    cube: int
    pe: int
    x_mm: float
    y_mm: float
    overhead_ps: int
    impl: str


@dataclass(frozen=True, slots=True)
class Link:
    """A wire from `source` to `target` with the delay `wire_ps`.

    It serialises bytes at `bw_gbs`; None means that it only delays.
    """

    index: int
    source: int
    target: int
    mm: float
    wire_ps: int
    bw_gbs: float | None


class ChipGraph(SipPlan):
    """Nodes and links of one SIP by index, and the indices of nodes by cube and PE."""

    def __init__(self, topology: Topology, sip: int = 0) -> None:
        super().__init__(topology)
        self._parts = parts_of(topology, sip)
        self._part_topologies: dict[frozenset[tuple[str, PartValue]], Topology] = {}
        overheads_ns = _overheads_ns(topology)
        overheads_ps: dict[NodeKind, int] = {
            kind: ps_from_ns(ns) for kind, ns in overheads_ns.items()
        }
        self.nodes = tuple(
            Node(
                index,
                *component,
                overhead_ps=self._own_overhead_ps(component, overheads_ps),
                impl=topology.impl.of(component.kind),
            )
            for index, component in enumerate(self.components)
        )
        self.links = tuple(self._links())
        self._link_of = {(link.source, link.target): link.index for link in self.links}

    @cached_property
    def down(self) -> DownParts:
        """The parts that are not used."""
        return DownParts(self, self._parts.down)

    @cached_property
    def links_down(self) -> frozenset[int]:
        """The links that are not used, those of components that are not used among them."""
        down = self.down
        ports = {self._ports[port] for port in down.ports}
        unused = {
            node.index
            for node in self.nodes
            if node.cube in down.cubes or (node.cube, node.pe) in down.pes
        }
        routers = {
            (self.cube_base(cube) + a, self.cube_base(cube) + b)
            for cube in range(self.topology.cubes)
            for a, b in down.router_links(cube)
        }
        return frozenset(
            link.index
            for link in self.links
            if {link.source, link.target} & (unused | ports)
            or (link.source, link.target) in routers
        )

    @property
    def is_uniform(self) -> bool:
        """Whether no part differs from the file."""
        return self._parts.is_uniform

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """The names of the links, by index: once for all SIPs of a process."""
        names = [node.name for node in self.nodes]
        return tuple(f"{names[link.source]}->{names[link.target]}" for link in self.links)

    def link(self, source: int, target: int) -> Link:
        """The link from node `source` to its neighbour `target`; `KeyError` if there is none."""
        return self.links[self._link_of[source, target]]

    def topology_of(self, node: int) -> Topology:
        """The keys of the component at a node: those of the file, with its own values."""
        values = self._parts.values.get(self.nodes[node].name)
        if not values:
            return self.topology
        # Equal parts share one.
        key = frozenset(values.items())
        if key not in self._part_topologies:
            self._part_topologies[key] = with_part_values(self.topology, values)
        return self._part_topologies[key]

    def _own_overhead_ps(self, component: PlannedNode, overheads_ps: Mapping[NodeKind, int]) -> int:
        own = self._parts.values.get(component.name)
        key = _OVERHEADS.get(component.kind, "")
        if own is not None and key in own:
            return ps_from_ns(own[key])
        return overheads_ps.get(component.kind, 0)

    def _links(self) -> Iterator[Link]:
        keys = {wire.key for wire in self.wires}
        bandwidths = {key: attrgetter(key)(self.topology) if key else None for key in keys}
        for index, wire in enumerate(self.wires):
            for direction, (source, target) in enumerate(((wire.a, wire.b), (wire.b, wire.a))):
                bw_gbs = bandwidths[wire.key]
                if not self._parts.is_uniform and bw_gbs is not None:
                    bw_gbs = self._own_gbs(wire.key, source, target, bw_gbs)
                yield Link(
                    index=2 * index + direction,
                    source=source,
                    target=target,
                    mm=wire.mm,
                    wire_ps=wire.wire_ps,
                    bw_gbs=bw_gbs,
                )

    def _own_gbs(self, key: str, source: int, target: int, bw_gbs: float) -> float:
        """The bandwidth of a link: its own, else the least that its ends have of their own."""
        names = self.components[source].name, self.components[target].name
        own_gbs = self._parts.links.get("->".join(names))
        if own_gbs is not None:
            return own_gbs
        ends = [self._parts.values.get(name, {}).get(key) for name in names]
        return min((each for each in ends if each is not None), default=bw_gbs)


def _overheads_ns(topology: Topology) -> dict[NodeKind, float]:
    return {kind: attrgetter(key)(topology) for kind, key in _OVERHEADS.items()}
