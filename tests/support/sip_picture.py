"""Draws a SIP of a topology file: the cube mesh with its IO chiplet, and one cube enlarged.

Positions are those of the nodes of `runtime.model.graph`, in mm from the north-west corner of the
cube mesh, y downwards. Inside the cubes they are those of the file; the IO chiplet has no floor
plan there, so its components stand in a row. Boxes are not to scale.
"""

# matplotlib leaves the types of keyword arguments open.
# pyright: reportUnknownMemberType=false

from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from kernbench.oracle.theory.bandwidths import slice_gbs
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.plots import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    centred,
    key,
    legend_below,
    new_figure,
)
from runtime.model.graph import ChipGraph, Node
from runtime.model.schema.topology_schema import Topology

COLOURS = {"pe": BLUE, "sram": GREEN, "m_cpu": PURPLE, "ucie": ORANGE}
CUBE_COLOUR, HBM_COLOUR, IO_COLOUR = "#F4F4F4", SKY, VERMILION
LEGEND = {
    "PE": BLUE,
    "HBM stack": HBM_COLOUR,
    "SRAM": GREEN,
    "M_CPU": PURPLE,
    "UCIe port": ORANGE,
    "IO chiplet and host": IO_COLOUR,
}
IO_NAMES = {"io_noc": "IO NoC", "io_cpu": "IO CPU", "pcie_ep": "PCIe endpoint", "host": "host"}
CROSSBAR = (0, (4, 2))
"""Line style of the crossbar between a PE and its HBM slice."""
PICTURE = "sip.png"


class Box(NamedTuple):
    """An axis-parallel rectangle, in mm."""

    left: float
    top: float
    w: float
    h: float

    @classmethod
    def around(cls, x: float, y: float, w: float, h: float) -> "Box":
        """The box with this centre and size."""
        return cls(x - w / 2, y - h / 2, w, h)

    @property
    def centre(self) -> tuple[float, float]:
        """Position of the centre."""
        return self.left + self.w / 2, self.top + self.h / 2


def sip_picture(topology: Topology) -> Figure:
    """The picture of the SIP of a topology file."""
    graph = ChipGraph(topology)
    cubes, pes = topology.cubes, topology.cubes * topology.pes_per_cube
    figure = new_figure(7.0, f"A SIP: {cubes} cubes with {pes} PEs, and an IO chiplet")
    sip, cube = figure.subplots(1, 2)
    _draw_sip(sip, graph)
    _draw_enlarged(cube, graph, _inner_cube(graph))
    for axes in (sip, cube):
        axes.set_aspect("equal")
        # The file counts y downwards from the north-west corner.
        axes.invert_yaxis()
        axes.axis("off")
    handles = [
        *(Patch(color=colour, label=name) for name, colour in LEGEND.items()),
        key("router, mesh link", GREY, marker=".", markersize=8),
        key("crossbar", BLUE, linestyle=CROSSBAR),
    ]
    legend_below(figure, handles)
    return figure


def _draw_sip(axes: Axes, graph: ChipGraph) -> None:
    mesh, ucie = graph.topology.sip.cube_mesh, graph.topology.ucie
    for cube in range(graph.topology.cubes):
        _draw_cube(axes, graph, cube)
        centred(axes, *_hbm(graph, cube).centre, str(cube), 10)
    for node in graph.nodes:
        if node.cube >= 0 and node.kind in COLOURS:
            _draw_box(axes, Box.around(node.x_mm, node.y_mm, 1.4, 1.4), COLOURS[node.kind])
    _draw_io_chiplet(axes, graph)
    axes.set_title(
        f"{mesh.w} x {mesh.h} cubes, joined by UCIe links of {ucie.bw_gbs:g} GB/s", fontsize=11
    )
    axes.autoscale_view()


def _draw_io_chiplet(axes: Axes, graph: ChipGraph) -> None:
    """The IO chiplet beside the mesh: its ports, its components, and the host behind them."""
    along = graph.edge in "NS"
    ports = [node for node in graph.nodes if node.kind == "ucie" and node.cube < 0]
    chain = [node for node in graph.nodes if node.kind in IO_NAMES]
    noc = next(node for node in chain if node.kind == "io_noc")
    for port in ports:
        # The port on the cube's side of the gap is drawn with the cubes.
        _draw_line(axes, (port, noc), IO_COLOUR)
        _draw_box(axes, Box.around(port.x_mm, port.y_mm, 1.8, 1.8), ORANGE)
    for node in chain:
        w, h = (12.0, 2.4) if along else (2.4, 12.0)
        _draw_box(axes, Box.around(node.x_mm, node.y_mm, w, h), IO_COLOUR)
        _write(axes, (node.x_mm, node.y_mm), IO_NAMES[node.kind], upright=not along)
    for sign in (-1, 1):
        _draw_sip_port(axes, noc, sign, along=along)


def _draw_sip_port(axes: Axes, noc: Node, sign: int, *, along: bool) -> None:
    """A port to another SIP, beside the IO NoC; the edge of the mesh runs `along` x or along y."""
    # Shifted by 1 mm from the middle of the NoC, clear of the lines to the ports of the mesh.
    x, y = (noc.x_mm + sign * 10.0, noc.y_mm + 1.0) if along else (noc.x_mm, noc.y_mm + sign * 10.0)
    axes.plot(
        [noc.x_mm, x], [y if along else noc.y_mm, y], color=IO_COLOUR, linewidth=1.2, zorder=1
    )
    _draw_box(axes, Box.around(x, y, 1.8, 1.8), ORANGE)
    label = (x + sign * 1.6, y) if along else (x, y + sign * 1.8)
    align = {1: "left", -1: "right"}[sign] if along else "center"
    axes.text(*label, "to another SIP", ha=align, va="center", fontsize=9)


def _draw_cube(axes: Axes, graph: ChipGraph, cube: int, marker_size: float = 3) -> None:
    """The outline of a cube, its HBM stack, routers and mesh links."""
    routers = [node for node in graph.nodes if node.cube == cube and node.kind == "router"]
    # Links from a router to a PE, a port or a memory have no length worth drawing.
    numbers = {node.index for node in routers}
    _draw_box(axes, _outline(graph, cube), CUBE_COLOUR, edge=GREY)
    _draw_box(axes, _hbm(graph, cube), HBM_COLOUR)
    for link in graph.links:
        # Each direction is a link of its own; one line stands for both.
        if link.source < link.target and {link.source, link.target} <= numbers:
            _draw_line(axes, (graph.nodes[link.source], graph.nodes[link.target]), GREY)
    dots = [(node.x_mm, node.y_mm) for node in routers]
    axes.plot(*zip(*dots, strict=True), ".", color=GREY, markersize=marker_size, zorder=2)


def _draw_enlarged(axes: Axes, graph: ChipGraph, cube: int) -> None:
    """One cube with names and bandwidths."""
    topology = graph.topology
    nodes, slices = [node for node in graph.nodes if node.cube == cube], _slices(graph, cube)
    _draw_cube(axes, graph, cube, marker_size=9)
    for node in nodes:
        if node.kind in ("sram", "m_cpu"):
            _draw_named(axes, (node.x_mm, node.y_mm + 0.6), node.kind.upper(), COLOURS[node.kind])
        elif node.kind == "ucie":
            side = node.name.rpartition(".")[2]
            _draw_named(axes, (node.x_mm, node.y_mm), f"UCIe {side}", ORANGE)
        elif node.kind == "pe":
            _draw_pe(axes, node, slices[node.pe])
    memory_gbs = float(slice_gbs(TopologyFile(topology.values())))
    noc = topology.cube.noc
    axes.set_title(
        f"cube {cube}: {noc.rows} x {noc.cols} routers, mesh links of {noc.link_bw_gbs:g} GB/s;\n"
        f"each PE has an HBM slice of {topology.hbm.slice_gib:g} GiB with {memory_gbs:g} GB/s",
        fontsize=11,
    )


def _draw_pe(axes: Axes, node: Node, hbm_slice: Box) -> None:
    """A PE on the outer side of its router, and the crossbar to its HBM slice."""
    north = node.y_mm < hbm_slice.top
    y = node.y_mm + (-0.6 if north else 0.6)
    end = hbm_slice.top if north else hbm_slice.top + hbm_slice.h
    xs = [node.x_mm, hbm_slice.centre[0]]
    axes.plot(xs, [y, end], color=BLUE, linewidth=1.1, linestyle=CROSSBAR)
    _draw_named(axes, (node.x_mm, y), f"PE {node.pe}", BLUE)
    _draw_box(axes, hbm_slice, HBM_COLOUR, edge="white")
    x, y = hbm_slice.centre
    centred(axes, x, y, f"slice\n{node.pe}", 8, zorder=5)


def _slices(graph: ChipGraph, cube: int) -> dict[int, Box]:
    """The HBM slices of a cube by PE: two rows of the stack, each slice near its PE."""
    stack, middle = _hbm(graph, cube), _outline(graph, cube).centre[1]
    pes = [node for node in graph.nodes if node.cube == cube and node.kind == "pe"]
    boxes: dict[int, Box] = {}
    # The file has no positions of slices: the stack is divided evenly.
    for row, north in enumerate((True, False)):
        half = sorted((pe for pe in pes if (pe.y_mm < middle) is north), key=lambda pe: pe.x_mm)
        for column, pe in enumerate(half):
            w, h = stack.w / len(half), stack.h / 2
            boxes[pe.pe] = Box(stack.left + column * w, stack.top + row * h, w, h)
    return boxes


def _inner_cube(graph: ChipGraph) -> int:
    """The first cube with the most UCIe ports: one surrounded by others, if there is one."""
    ports = [node.cube for node in graph.nodes if node.kind == "ucie" and node.cube >= 0]
    return max(range(graph.topology.cubes), key=ports.count)


def _outline(graph: ChipGraph, cube: int) -> Box:
    topology = graph.topology
    column, row = cube % topology.sip.cube_mesh.w, cube // topology.sip.cube_mesh.w
    size, gap = topology.cube.size_mm, topology.sip.cube_gap_mm
    return Box(column * (size.w + gap), row * (size.h + gap), size.w, size.h)


def _hbm(graph: ChipGraph, cube: int) -> Box:
    outline = _outline(graph, cube)
    left, top, right, bottom = graph.topology.cube.noc.hbm_hole_mm
    return Box(outline.left + left, outline.top + top, right - left, bottom - top)


def _draw_box(axes: Axes, box: Box, colour: str, edge: str = "none") -> None:
    # Cubes below, then HBM stacks, mesh links and routers; components on top.
    order = {CUBE_COLOUR: 0, HBM_COLOUR: 1}.get(colour, 4)
    axes.add_patch(
        Rectangle((box.left, box.top), box.w, box.h, facecolor=colour, edgecolor=edge, zorder=order)
    )


def _draw_line(axes: Axes, ends: tuple[Node, Node], colour: str) -> None:
    xs, ys = [node.x_mm for node in ends], [node.y_mm for node in ends]
    axes.plot(xs, ys, color=colour, linewidth=0.8, zorder=1)


def _draw_named(axes: Axes, centre: tuple[float, float], name: str, colour: str) -> None:
    _draw_box(axes, Box.around(*centre, 1.6, 0.65), colour)
    _write(axes, centre, name)


def _write(axes: Axes, centre: tuple[float, float], text: str, *, upright: bool = False) -> None:
    look = {"color": "white", "rotation": 90 if upright else 0, "fontweight": "bold"}
    centred(axes, *centre, text, 8, zorder=5, **look)
