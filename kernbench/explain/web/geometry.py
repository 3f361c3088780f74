"""The drawing of a SIP: boxes of its components, routers, and a segment for every directed link.

Positions are those of `runtime.model.graph`, in mm from the north-west corner of the cube mesh, y
downwards. Parts that share a position are drawn side by side: the port and the crossbar of a PE
inside its box, the HBM slices in the hole of the router grid, and the two directions of a wire on
both sides of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import hypot

from runtime.core.trace import IO_CHIPLET
from runtime.model.graph import ChipGraph, Link, Node

CUBE, STACK, SLICE = "cube", "HBM stack", "HBM slice"
PE, SRAM, M_CPU, PORT, ROUTER, IO = "PE", "SRAM", "M_CPU", "UCIe port", "router", "IO chiplet"
_IO_TITLES = {
    "host": "host",
    "pcie_ep": "PCIe endpoint",
    "io_cpu": "IO CPU",
    "io_noc": "IO NoC",
}
_KINDS = {"pe": PE, "sram": SRAM, "m_cpu": M_CPU, "ucie": PORT, "router": ROUTER}
_BOX_OF_PITCH = 0.62
"""Side of a PE's box, as a part of the least distance between two components."""
_GAP_OF_PITCH = 0.06
"""Distance of the two directions of a wire."""


@dataclass(frozen=True, slots=True)
class DrawnBox:
    """A component as a rectangle around its position; `title` is written on it."""

    kind: str
    name: str
    title: str
    cube: int
    pe: int
    x_mm: float
    y_mm: float
    w_mm: float
    h_mm: float


@dataclass(frozen=True, slots=True)
class Segment:
    """A directed link; without a bandwidth it only delays, and one that is down is not used."""

    name: str
    x0: float
    y0: float
    x1: float
    y1: float
    bw_gbs: float | None
    is_down: bool = False


class SipDrawing:
    """The boxes and segments of one SIP; all SIPs of a machine are equal."""

    def __init__(self, graph: ChipGraph) -> None:
        self._graph = graph
        grid = graph.plan.grid
        self.pitch_mm = float(min(grid.pitch_x_mm, grid.pitch_y_mm))
        self._side_mm = _BOX_OF_PITCH * min(self.pitch_mm, _least_distance(graph))
        self.cubes = [self._cube(cube) for cube in range(graph.topology.cubes)]
        self.stacks = [self._stack(cube) for cube in self.cubes]
        self.slices = [each for cube in self.cubes for each in self._slices(cube)]
        self._slice_at = {(each.cube, each.pe): (each.x_mm, each.y_mm) for each in self.slices}
        self.boxes = [*self._component_boxes()]
        self.routers = [self._box(node, 0.0, 0.0) for node in graph.nodes if node.kind == "router"]
        self.segments = [self._segment(link) for link in graph.links]

    def _cube(self, cube: int) -> DrawnBox:
        size, gap_mm = self._graph.topology.cube.size_mm, self._graph.topology.sip.cube_gap_mm
        column, row = self._graph.mesh_position(cube)
        x_mm, y_mm = column * (size.w + gap_mm) + size.w / 2, row * (size.h + gap_mm) + size.h / 2
        return DrawnBox(
            kind=CUBE,
            name=f"cube{cube}",
            title=f"cube {cube}",
            cube=cube,
            pe=-1,
            x_mm=x_mm,
            y_mm=y_mm,
            w_mm=size.w,
            h_mm=size.h,
        )

    def _stack(self, cube: DrawnBox) -> DrawnBox:
        left, top, right, bottom = self._graph.topology.cube.noc.hbm_hole_mm
        return DrawnBox(
            kind=STACK,
            name=f"{cube.name}.hbm",
            title=cube.title,
            cube=cube.cube,
            pe=-1,
            x_mm=cube.x_mm - cube.w_mm / 2 + (left + right) / 2,
            y_mm=cube.y_mm - cube.h_mm / 2 + (top + bottom) / 2,
            w_mm=right - left,
            h_mm=bottom - top,
        )

    def _slices(self, cube: DrawnBox) -> Iterator[DrawnBox]:
        """The stack in two rows of slices, each slice on the side of its PE."""
        stack = self._stack(cube)
        pes = [node for node in self._graph.nodes if node.cube == cube.cube and node.kind == "pe"]
        north = [node for node in pes if node.y_mm < cube.y_mm]
        south = [node for node in pes if node.y_mm >= cube.y_mm]
        # The file has no positions of slices: the stack is divided evenly.
        rows = [sorted(row, key=lambda node: node.x_mm) for row in (north, south) if row]
        h_mm = stack.h_mm / len(rows)
        for row, nodes in enumerate(rows):
            w_mm = stack.w_mm / len(nodes)
            for column, node in enumerate(nodes):
                yield DrawnBox(
                    kind=SLICE,
                    name=f"cube{cube.cube}.pe{node.pe}.hbm_ctrl",
                    title=f"HBM {node.pe}",
                    cube=cube.cube,
                    pe=node.pe,
                    x_mm=stack.x_mm - stack.w_mm / 2 + (column + 0.5) * w_mm,
                    y_mm=stack.y_mm - stack.h_mm / 2 + (row + 0.5) * h_mm,
                    w_mm=w_mm,
                    h_mm=h_mm,
                )

    def _component_boxes(self) -> Iterator[DrawnBox]:
        side_mm = self._side_mm
        size = self._graph.topology.cube.size_mm
        for node in self._graph.nodes:
            if node.kind in _IO_TITLES:
                # Across the chain of the IO chiplet, which leads away from the mesh.
                w_mm, h_mm = size.w * 0.8, min(size.w, size.h) * 0.17
                across = self._graph.edge in "NS"
                yield self._box(node, *((w_mm, h_mm) if across else (h_mm, w_mm)))
            elif node.kind in ("pe", "sram", "m_cpu", "ucie"):
                yield self._box(node, side_mm, side_mm)

    def _box(self, node: Node, w_mm: float, h_mm: float) -> DrawnBox:
        title = {"pe": f"PE {node.pe}", "sram": SRAM, "m_cpu": M_CPU}.get(node.kind, "")
        return DrawnBox(
            kind=_KINDS.get(node.kind, IO),
            name=node.name,
            title=_IO_TITLES.get(node.kind, title),
            cube=node.cube,
            pe=node.pe,
            x_mm=node.x_mm,
            y_mm=node.y_mm,
            w_mm=w_mm,
            h_mm=h_mm,
        )

    def _segment(self, link: Link) -> Segment:
        nodes = self._graph.nodes
        (x0, y0), (x1, y1) = self._end(nodes[link.source]), self._end(nodes[link.target])
        # To the right of its direction, so that the opposite link stays visible.
        length = hypot(x1 - x0, y1 - y0) or 1.0
        gap = min(_GAP_OF_PITCH * self.pitch_mm, length / 4)
        dx, dy = -(y1 - y0) / length * gap, (x1 - x0) / length * gap
        return Segment(
            name=self._graph.link_names[link.index],
            x0=x0 + dx,
            y0=y0 + dy,
            x1=x1 + dx,
            y1=y1 + dy,
            bw_gbs=link.bw_gbs,
            is_down=link.index in self._graph.links_down,
        )

    def _end(self, node: Node) -> tuple[float, float]:
        """The point at which the links of a node end."""
        if node.kind == "hbm_ctrl":
            return self._slice_at[node.cube, node.pe]
        if node.cube == IO_CHIPLET or node.kind in ("router", "ucie"):
            return node.x_mm, node.y_mm
        # The crossbar is on the side of the HBM stack, the port and the others opposite.
        shift = self._side_mm * (0.3 if node.kind == "xbar" else -0.3)
        cube = self.cubes[node.cube]
        dx = shift if node.x_mm < cube.x_mm else -shift
        dy = shift if node.y_mm < cube.y_mm else -shift
        return node.x_mm + dx, node.y_mm + dy


def _least_distance(graph: ChipGraph) -> float:
    """The least distance between two components of a cube that have a box, in mm."""
    kinds = ("pe", "sram", "m_cpu")
    nodes = [node for node in graph.nodes if node.cube == 0 and node.kind in kinds]
    distances = [max(abs(a.x_mm - b.x_mm), abs(a.y_mm - b.y_mm)) for a, b in combinations(nodes, 2)]
    # Components at one position cover each other, of any size.
    return min((each for each in distances if each > 0), default=float("inf"))
