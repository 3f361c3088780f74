"""The floor plan of a cube: its nodes and wires in coordinates of the cube.

All cubes of a SIP have the same plan; they differ only in the sides that have a UCIe port.
"""

from dataclasses import dataclass
from fractions import Fraction

from runtime.core.simtime import PS_PER_NS, exact
from runtime.core.trace import NO_PE
from runtime.model.router_grid import RouterGrid
from runtime.model.schema.quantities import Point, Side
from runtime.model.schema.topology_schema import NodeKind, Topology

SIDES: tuple[Side, ...] = ("N", "E", "S", "W")


@dataclass(frozen=True)
class PlanNode:
    """A node of every cube; `name` is the part of its name after that of the cube."""

    kind: NodeKind
    name: str
    pe: int
    x_mm: float
    y_mm: float


@dataclass(frozen=True)
class PlanWire:
    """Two links, one each way, between two nodes of the plan; `key` is that of their bandwidth."""

    a: int
    b: int
    mm: Fraction
    key: str


@dataclass(frozen=True)
class PlanPort:
    """The position of the UCIe port of one side, and the wire to its router."""

    router: int
    mm: Fraction
    x_mm: float
    y_mm: float


class CubePlan:
    """Nodes in the order routers (row-major), m_cpu, sram, then pe, xbar and hbm_ctrl of each PE.

    `stems` has, for each node, its only connection to the router mesh: the nodes from it to its
    router, both included.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.grid = RouterGrid(topology.cube.size_mm, topology.cube.noc)
        self.routers = len(self.grid.routers)
        self.m_cpu, self.sram = self.routers, self.routers + 1
        self.nodes: list[PlanNode] = []
        self.wires: list[PlanWire] = []
        self.stems: list[tuple[int, ...]] = []
        self._add_routers()
        self._add_cube_components()
        for pe, position in enumerate(self._pe_positions()):
            self._add_pe(pe, position)
        self.ports = {side: self._port(topology.cube.ucie_pos_mm.at(side)) for side in SIDES}

    def pe(self, pe: int) -> int:
        """The port of PE `pe`: its DMA."""
        return self.sram + 1 + 3 * pe

    def xbar(self, pe: int) -> int:
        """The crossbar beside PE `pe`."""
        return self.pe(pe) + 1

    def hbm(self, pe: int) -> int:
        """The controller of the HBM slice of PE `pe`."""
        return self.pe(pe) + 2

    def _add_routers(self) -> None:
        for index, router in enumerate(self.grid.routers):
            name = f"router.r{router.row}c{router.col}"
            self._add(
                PlanNode("router", name, NO_PE, float(router.x_mm), float(router.y_mm)), (index,)
            )
            for neighbour in self.grid.neighbours[index]:
                # Each pair of routers once: a wire stands for the links of both directions.
                if neighbour > index:
                    mm = self.grid.link_mm(index, neighbour)
                    self.wires.append(PlanWire(index, neighbour, mm, "cube.noc.link_bw_gbs"))

    def _add_cube_components(self) -> None:
        cube = self._topology.cube
        self._attach("m_cpu", cube.m_cpu.pos_mm, "cube.m_cpu.to_router_bw_gbs")
        self._attach("sram", cube.sram.pos_mm, "cube.sram_to_router_bw_gbs")

    def _attach(self, kind: NodeKind, position: Point, key: str) -> None:
        router, mm = self.grid.nearest(position)
        self.wires.append(PlanWire(len(self.nodes), router, mm, key))
        self._add(PlanNode(kind, kind, NO_PE, *position), (len(self.nodes), router))

    def _add_pe(self, pe: int, position: Point) -> None:
        router, mm = self.grid.nearest(position)
        # A PE and its HBM controller have different ports on the router: traffic of others to the
        # slice does not pass the PE.
        port, xbar, hbm = self.pe(pe), self.xbar(pe), self.hbm(pe)
        self._add(PlanNode("pe", f"pe{pe}", pe, *position), (port, router))
        self._add(PlanNode("xbar", f"pe{pe}.xbar", pe, *position), (xbar, router))
        self._add(PlanNode("hbm_ctrl", f"pe{pe}.hbm_ctrl", pe, *position), (hbm, xbar, router))
        self.wires.append(PlanWire(port, router, mm, "pe.to_router_bw_gbs"))
        # The crossbar is part of the PE's tile: its wires are too short for a delay of 1 ps.
        self.wires.extend(
            PlanWire(xbar, end, Fraction(0), "xbar.to_hbm_bw_gbs") for end in (router, port, hbm)
        )

    def _add(self, node: PlanNode, stem: tuple[int, ...]) -> None:
        self.nodes.append(node)
        self.stems.append(stem)

    def _pe_positions(self) -> list[Point]:
        layout = self._topology.cube.pe_layout
        return [
            point
            for corner in layout.corners
            for point in layout.pos_mm.at(corner)[: layout.pe_per_corner]
        ]

    def _port(self, position: Point) -> PlanPort:
        router, mm = self.grid.nearest(position)
        return PlanPort(router, mm, *position)


def wire_ps(mm: Fraction, ns_per_mm: float) -> int:
    """The delay of a wire of `mm`, rounded to the picosecond."""
    # Rounded once per wire: the sum over a route is then exact, however the route is divided.
    return round(mm * exact(ns_per_mm) * PS_PER_NS)
