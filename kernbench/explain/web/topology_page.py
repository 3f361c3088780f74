"""The page of a machine without a run: the SIP, the network between SIPs, and their figures."""

from collections.abc import Mapping
from typing import Any

from kernbench.explain.web.document import page_html
from kernbench.explain.web.fabric_geometry import FabricDrawing
from kernbench.explain.web.geometry import SipDrawing
from kernbench.explain.web.package_figure import fabric_figure, sip_figure
from kernbench.oracle.theory.bandwidths import peak_macs_per_cycle, slice_gbs
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.model.graph import ChipGraph
from runtime.model.jitter import jitter_bounds
from runtime.model.schema.topology_schema import PartValue
from runtime.model.topology import Topology

LABEL_PITCHES = 14
"""A part of the SIP with this many routers in a row has space for the names of its components."""


def topology_page(topology: Topology, source: str) -> str:
    """The HTML of a topology; `source` names its file."""
    drawing = SipDrawing(ChipGraph(topology))
    figures = hardware_figures(topology, drawing, loads=False)
    data = {"run": False, "sips": topology.sips, "label_mm": LABEL_PITCHES * drawing.pitch_mm}
    return page_html(f"kernbench: {source}", machine_facts(topology), figures, data)


def hardware_figures(topology: Topology, drawing: SipDrawing, *, loads: bool) -> dict[str, Any]:
    """The figures of the hardware by the element of the page that they are in."""
    mesh, noc = topology.sip.cube_mesh, topology.cube.noc
    title = (
        f"A SIP: {mesh.w} x {mesh.h} cubes with {topology.pes_per_cube} PEs each, "
        f"UCIe {topology.ucie.bw_gbs:g} GB/s, mesh links {noc.link_bw_gbs:g} GB/s"
    )
    figures = {"map": sip_figure(drawing, title, loads=loads)}
    if topology.sips > 1:
        sips = topology.system.sips
        kind = "switch" if sips.fabric == "switch" else sips.topology
        what = f"{kind}, {topology.ucie.bw_gbs:g} GB/s in each direction"
        figures["fabric"] = fabric_figure(FabricDrawing(topology), what, loads=loads)
    return figures


def override_text(override: Mapping[str, PartValue]) -> str:
    """The values of a part: `bw_gbs 16`, `down`."""
    return ", ".join(
        key if value is True else f"{key} {value:g}"
        for key, value in override.items()
        if value is not False
    )


def machine_facts(topology: Topology) -> list[str]:
    """The size of the machine and its peak rates."""
    file = TopologyFile(topology.values())
    sips, cubes, pes = topology.sips, topology.cubes, topology.pes_per_cube
    ops_per_s = 2 * peak_macs_per_cycle(file) * file.number("pe.gemm.clock_ghz")
    counts = ((sips, "SIP"), (cubes, "cube"), (pes, "PE"))
    size = " x ".join(f"{count} {name}{'s' * (count > 1)}" for count, name in counts)
    return [
        f"{size} = {sips * cubes * pes:,} PEs",
        f"HBM {float(slice_gbs(file)):g} GB/s per PE",
        f"GEMM {float(ops_per_s) / 1000:g} TFLOP/s per PE",
        f"packets of {topology.packet_bytes:,} B",
        *([f"jitter to: {bounds} ns"] if (bounds := jitter_bounds(topology)) else []),
        *(f"{name}: {override_text(each)}" for name, each in topology.overrides.items()),
    ]
