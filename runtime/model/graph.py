"""The graph of one SIP: nodes that delay, directed links that serialise.

    host - pcie_ep - io_cpu - io_noc - io.ucie.meshK - cubeN.ucie.S - router mesh of the cube - ...

The IO chiplet has one port per column (edge N, S) or row (edge W, E) of the cube mesh. A cube has a
UCIe port on every side that faces another cube or the IO chiplet. All SIPs are equal and share one
graph; the links between SIPs are in `sip_fabric.SipFabric`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from runtime.core.simtime import exact, ps_from_ns
from runtime.core.trace import IO_CHIPLET, NO_PE
from runtime.model.cube_plan import SIDES, CubePlan, wire_ps
from runtime.model.schema.quantities import Side
from runtime.model.schema.topology_schema import NodeKind, Topology

OPPOSITE: dict[Side, Side] = {"N": "S", "S": "N", "W": "E", "E": "W"}
_STEP: dict[Side, tuple[int, int]] = {"N": (0, -1), "S": (0, 1), "W": (-1, 0), "E": (1, 0)}


@dataclass(frozen=True, slots=True)
class Node:
    """A component that messages pass or end at; entering it costs `overhead_ps`.

    `cube` is `IO_CHIPLET` outside the cubes, `pe` is `NO_PE` for a node that belongs to no PE. The
    position is relative to the north-west corner of the cube mesh. Inside the cubes it determines
    the lengths of wires; on the IO chiplet it serves drawings only.
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


class ChipGraph:
    """Nodes and links of one SIP by index, and the indices of nodes by cube and PE."""

    host = 0
    pcie_ep = 1
    io_cpu = 2
    io_noc = 3

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.plan = CubePlan(topology)
        self.edge: Side = topology.sip.io_chiplet.edge
        self._columns, self._rows = topology.sip.cube_mesh.w, topology.sip.cube_mesh.h
        self._ports: dict[tuple[int, Side], int] = {}
        # From a UCIe port to the node inside its die.
        self._behind: dict[int, int] = {}
        self._cube_base: list[int] = []
        draft = _Draft(topology)
        self._add_io_chiplet(draft)
        # Once for all cubes: arithmetic of fractions is slow.
        lengths = [draft.length(wire.mm) for wire in self.plan.wires]
        for cube in range(topology.cubes):
            self._add_cube(draft, cube, lengths)
        for cube in range(topology.cubes):
            self._join_cube(draft, cube)
        self.nodes, self.links = tuple(draft.nodes), tuple(draft.links)
        self._link_of = {(link.source, link.target): link.index for link in self.links}

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """The names of the links, by index: once for all SIPs of a process."""
        names = [node.name for node in self.nodes]
        return tuple(f"{names[link.source]}->{names[link.target]}" for link in self.links)

    def link(self, source: int, target: int) -> Link:
        """The link from node `source` to its neighbour `target`; `KeyError` if there is none."""
        return self.links[self._link_of[source, target]]

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

    def _add_io_chiplet(self, draft: "_Draft") -> None:
        io = self.topology.sip.io_chiplet
        position = _io_positions(self.topology)
        for depth, kind in zip((5, 4, 3, 2), ("host", "pcie_ep", "io_cpu", "io_noc"), strict=True):
            draft.add(kind, kind if kind == "host" else f"io.{kind}", *position(depth, None))
        for near, far, bw_gbs in (
            (0, 1, io.pcie_ep.bw_gbs),
            (1, 2, io.io_cpu.bw_gbs),
            (2, 3, io.noc.bw_gbs),
        ):
            draft.join(near, far, Fraction(0), bw_gbs)
        for lane in range(self._columns if self.edge in "NS" else self._rows):
            port = draft.add("ucie", f"io.ucie.mesh{lane}", *position(1, lane))
            # The floor plan of the IO chiplet is not given: its wires have no length.
            draft.join(self.io_noc, port, Fraction(0), None)
            self._behind[port] = self.io_noc

    def _add_cube(self, draft: "_Draft", cube: int, lengths: list["_Length"]) -> None:
        base = len(draft.nodes)
        self._cube_base.append(base)
        left_mm, top_mm = _cube_origin(self.topology, *self.mesh_position(cube))
        for node in self.plan.nodes:
            draft.add(
                node.kind,
                f"cube{cube}.{node.name}",
                left_mm + node.x_mm,
                top_mm + node.y_mm,
                cube,
                node.pe,
            )
        for wire, length in zip(self.plan.wires, lengths, strict=True):
            draft.wire(base + wire.a, base + wire.b, length, wire.bw_gbs)
        for side in SIDES:
            if self.beside(cube, side) is not None:
                plan = self.plan.ports[side]
                name = f"cube{cube}.ucie.{side}"
                port = draft.add("ucie", name, left_mm + plan.x_mm, top_mm + plan.y_mm, cube)
                # The bandwidth of UCIe belongs to the link between two ports; to its router a port
                # only delays.
                draft.join(port, base + plan.router, plan.mm, None)
                self._ports[cube, side] = port
                self._behind[port] = base + plan.router

    def _join_cube(self, draft: "_Draft", cube: int) -> None:
        sip, bw_gbs = self.topology.sip, self.topology.ucie.bw_gbs
        for side in SIDES:
            beside = self.beside(cube, side)
            if beside == IO_CHIPLET:
                draft.join(
                    self.port(cube, side),
                    self.mesh_port(cube),
                    exact(sip.io_chiplet.gap_mm),
                    bw_gbs,
                )
            elif beside is not None and beside > cube:  # each pair of cubes once
                facing = self.port(beside, OPPOSITE[side])
                draft.join(self.port(cube, side), facing, exact(sip.cube_gap_mm), bw_gbs)


class _Length(NamedTuple):
    """The length of a wire, and its delay."""

    mm: float
    wire_ps: int


class _Draft:
    """A graph under construction."""

    def __init__(self, topology: Topology) -> None:
        self._ns_per_mm = topology.ns_per_mm
        self._impl = topology.impl
        self._overhead_ps = {kind: ps_from_ns(ns) for kind, ns in _overheads_ns(topology).items()}
        self.nodes: list[Node] = []
        self.links: list[Link] = []

    def add(
        self,
        kind: NodeKind,
        name: str,
        x_mm: float,
        y_mm: float,
        cube: int = IO_CHIPLET,
        pe: int = NO_PE,
    ) -> int:
        index = len(self.nodes)
        self.nodes.append(
            Node(
                index=index,
                kind=kind,
                name=name,
                cube=cube,
                pe=pe,
                x_mm=x_mm,
                y_mm=y_mm,
                overhead_ps=self._overhead_ps[kind],
                impl=self._impl.of(kind),
            )
        )
        return index

    def length(self, mm: Fraction) -> "_Length":
        return _Length(float(mm), wire_ps(mm, self._ns_per_mm))

    def join(self, a: int, b: int, mm: Fraction, bw_gbs: float | None) -> None:
        self.wire(a, b, self.length(mm), bw_gbs)

    def wire(self, a: int, b: int, length: "_Length", bw_gbs: float | None) -> None:
        # Two links: the directions of a wire do not share bandwidth.
        for source, target in ((a, b), (b, a)):
            self.links.append(
                Link(
                    index=len(self.links),
                    source=source,
                    target=target,
                    mm=length.mm,
                    wire_ps=length.wire_ps,
                    bw_gbs=bw_gbs,
                )
            )


def _overheads_ns(topology: Topology) -> dict[NodeKind, float]:
    io, cube = topology.sip.io_chiplet, topology.cube
    return {
        "host": topology.host.overhead_ns,
        "pcie_ep": io.pcie_ep.overhead_ns,
        "io_cpu": io.io_cpu.overhead_ns,
        "io_noc": io.noc.overhead_ns,
        "ucie": topology.ucie.overhead_ns,
        "m_cpu": cube.m_cpu.overhead_ns,
        "router": cube.noc.router_overhead_ns,
        "xbar": topology.xbar.overhead_ns,
        "hbm_ctrl": cube.hbm_ctrl.overhead_ns,
        "sram": cube.sram.overhead_ns,
        "pe": 0.0,  # its port: the DMA behind it charges its overhead itself
    }


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
