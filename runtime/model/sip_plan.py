"""The floor plan of a SIP: its components with their names, and the wires between them.

    host - pcie_ep - io_cpu - io_noc - io.ucie.meshK - cubeN.ucie.S - router mesh of the cube - ...

The IO chiplet has one port per column (edge N, S) or row (edge W, E) of the cube mesh. A cube has a
UCIe port on every side that faces another cube or the IO chiplet. All SIPs have one plan; the times
and bandwidths of one of them are in its `ChipGraph`.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from runtime.core.simtime import exact
from runtime.core.trace import IO_CHIPLET, NO_PE
from runtime.model.cube_plan import SIDES, CubePlan, wire_ps
from runtime.model.schema.quantities import Side
from runtime.model.schema.topology_schema import NodeKind, Topology

OPPOSITE: dict[Side, Side] = {"N": "S", "S": "N", "W": "E", "E": "W"}
_STEP: dict[Side, tuple[int, int]] = {"N": (0, -1), "S": (0, 1), "W": (-1, 0), "E": (1, 0)}
_IO = "sip.io_chiplet."


class PlannedNode(NamedTuple):
    """A component: `cube` is `IO_CHIPLET` outside the cubes, `pe` `NO_PE` for those of no PE.

    The position is relative to the north-west corner of the cube mesh. Inside the cubes it
    determines the lengths of wires; on the IO chiplet it serves drawings only.
    """

    kind: NodeKind
    name: str
    cube: int
    pe: int
    x_mm: float
    y_mm: float


class PlannedWire(NamedTuple):
    """A wire between two components: two links, since directions do not share bandwidth.

    `key` is that of the bandwidth of each, empty where they only delay.
    """

    a: int
    b: int
    mm: float
    wire_ps: int
    key: str


class _Length(NamedTuple):
    """The length of a wire, and its delay."""

    mm: float
    wire_ps: int


class SipPlan:
    """Components and wires of a SIP, and the indices of components by cube and PE."""

    host = 0
    pcie_ep = 1
    io_cpu = 2
    io_noc = 3

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.plan = CubePlan(topology)
        self.edge: Side = topology.sip.io_chiplet.edge
        self.components: list[PlannedNode] = []
        self.wires: list[PlannedWire] = []
        self._columns, self._rows = topology.sip.cube_mesh.w, topology.sip.cube_mesh.h
        self._ports: dict[tuple[int, Side], int] = {}
        # From a UCIe port to the node inside its die.
        self._behind: dict[int, int] = {}
        self._cube_base: list[int] = []
        self._add_io_chiplet()
        # Once for all cubes: arithmetic of fractions is slow.
        lengths = [self._length(wire.mm) for wire in self.plan.wires]
        for cube in range(topology.cubes):
            self._add_cube(cube, lengths)
        for cube in range(topology.cubes):
            self._join_cube(cube)

    def pe(self, cube: int, pe: int) -> int:
        """The port of a PE: its DMA."""
        return self._cube_base[cube] + self.plan.pe(pe)

    def xbar(self, cube: int, pe: int) -> int:
        """The crossbar beside a PE."""
        return self._cube_base[cube] + self.plan.xbar(pe)

    def hbm(self, cube: int, pe: int) -> int:
        """The controller of the HBM slice of a PE."""
        return self._cube_base[cube] + self.plan.hbm(pe)

    def sram(self, cube: int) -> int:
        """The SRAM of a cube."""
        return self._cube_base[cube] + self.plan.sram

    def m_cpu(self, cube: int) -> int:
        """The management CPU of a cube."""
        return self._cube_base[cube] + self.plan.m_cpu

    def cube_base(self, cube: int) -> int:
        """The node of a cube that is node 0 of the `CubePlan`."""
        return self._cube_base[cube]

    def port(self, cube: int, side: Side) -> int:
        """The UCIe port on a side of a cube; `KeyError` if the cube has no neighbour there."""
        return self._ports[cube, side]

    def behind(self, port: int) -> int:
        """The node inside the chip that a UCIe port is attached to: a router, or the IO NoC."""
        return self._behind[port]

    def mesh_port(self, cube: int) -> int:
        """The port of the IO chiplet in the column (edge N, S) or row (edge W, E) of `cube`."""
        column, row = self.mesh_position(cube)
        return self.io_noc + 1 + (column if self.edge in "NS" else row)

    def mesh_position(self, cube: int) -> tuple[int, int]:
        """Column and row of a cube in the mesh."""
        return cube % self._columns, cube // self._columns

    def edge_distance(self, cube: int) -> int:
        """Cubes between `cube` and the IO chiplet along its column or row."""
        column, row = self.mesh_position(cube)
        return {"N": row, "S": self._rows - 1 - row, "W": column, "E": self._columns - 1 - column}[
            self.edge
        ]

    def beside(self, cube: int, side: Side) -> int | None:
        """The cube on that side of `cube`, `IO_CHIPLET`, or None where nothing is."""
        (column, row), (dx, dy) = self.mesh_position(cube), _STEP[side]
        if 0 <= column + dx < self._columns and 0 <= row + dy < self._rows:
            return cube + dy * self._columns + dx
        return IO_CHIPLET if side == self.edge else None

    def _add_io_chiplet(self) -> None:
        position = _io_positions(self.topology)
        for depth, kind in zip((5, 4, 3, 2), ("host", "pcie_ep", "io_cpu", "io_noc"), strict=True):
            self._add(kind, kind if kind == "host" else f"io.{kind}", position(depth, None))
        chain = (self.host, self.pcie_ep, self.io_cpu, self.io_noc)
        for near, far, part in zip(chain, chain[1:], ("pcie_ep", "io_cpu", "noc"), strict=False):
            self._join(near, far, Fraction(0), f"{_IO}{part}.bw_gbs")
        for lane in range(self._columns if self.edge in "NS" else self._rows):
            port = self._add("ucie", f"io.ucie.mesh{lane}", position(1, lane))
            # The floor plan of the IO chiplet is not given: its wires have no length.
            self._join(self.io_noc, port, Fraction(0), "")
            self._behind[port] = self.io_noc

    def _add_cube(self, cube: int, lengths: list[_Length]) -> None:
        base = len(self.components)
        self._cube_base.append(base)
        left_mm, top_mm = _cube_origin(self.topology, *self.mesh_position(cube))
        for node in self.plan.nodes:
            position = left_mm + node.x_mm, top_mm + node.y_mm
            self._add(node.kind, f"cube{cube}.{node.name}", position, cube, node.pe)
        for wire, length in zip(self.plan.wires, lengths, strict=True):
            self.wires.append(PlannedWire(base + wire.a, base + wire.b, *length, wire.key))
        for side in SIDES:
            if self.beside(cube, side) is not None:
                plan = self.plan.ports[side]
                position = left_mm + plan.x_mm, top_mm + plan.y_mm
                port = self._add("ucie", f"cube{cube}.ucie.{side}", position, cube)
                # The bandwidth of UCIe belongs to the link between two ports; to its router a port
                # only delays.
                self._join(port, base + plan.router, plan.mm, "")
                self._ports[cube, side] = port
                self._behind[port] = base + plan.router

    def _join_cube(self, cube: int) -> None:
        sip, key = self.topology.sip, "ucie.bw_gbs"
        for side in SIDES:
            beside, port = self.beside(cube, side), self._ports.get((cube, side))
            if port is None or beside is None:
                continue
            if beside == IO_CHIPLET:
                self._join(port, self.mesh_port(cube), exact(sip.io_chiplet.gap_mm), key)
            elif beside > cube:  # each pair of cubes once
                facing = self.port(beside, OPPOSITE[side])
                self._join(port, facing, exact(sip.cube_gap_mm), key)

    def _add(
        self,
        kind: NodeKind,
        name: str,
        position: tuple[float, float],
        cube: int = IO_CHIPLET,
        pe: int = NO_PE,
    ) -> int:
        self.components.append(PlannedNode(kind, name, cube, pe, *position))
        return len(self.components) - 1

    def _length(self, mm: Fraction) -> _Length:
        return _Length(float(mm), wire_ps(mm, self.topology.ns_per_mm))

    def _join(self, a: int, b: int, mm: Fraction, key: str) -> None:
        self.wires.append(PlannedWire(a, b, *self._length(mm), key))


def _cube_origin(topology: Topology, column: int, row: int) -> tuple[float, float]:
    size, gap_mm = topology.cube.size_mm, topology.sip.cube_gap_mm
    return column * (size.w + gap_mm), row * (size.h + gap_mm)


def _io_positions(topology: Topology) -> Callable[[int, int | None], tuple[float, float]]:
    """The position to draw a node `depth` steps outside the cube mesh.

    It is beside the port of a column or row, or in the middle of the edge.
    """
    size, mesh, io = topology.cube.size_mm, topology.sip.cube_mesh, topology.sip.io_chiplet
    left_mm, top_mm = _cube_origin(topology, mesh.w - 1, mesh.h - 1)
    right_mm, bottom_mm = left_mm + size.w, top_mm + size.h

    def position(depth: int, lane: int | None) -> tuple[float, float]:
        step_mm = io.gap_mm + (depth - 1) * min(size.w, size.h) / 4
        x_mm, y_mm = right_mm / 2, bottom_mm / 2
        if lane is not None:
            port = topology.cube.ucie_pos_mm.at(io.edge)
            left_mm, top_mm = _cube_origin(topology, lane, lane)
            x_mm, y_mm = left_mm + port[0], top_mm + port[1]
        return {
            "N": (x_mm, -step_mm),
            "S": (x_mm, bottom_mm + step_mm),
            "W": (-step_mm, y_mm),
            "E": (right_mm + step_mm, y_mm),
        }[io.edge]

    return position
