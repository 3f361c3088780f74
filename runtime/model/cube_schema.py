"""The part of the schema of `topology.yaml` that describes a cube, key `cube`."""

from typing import Annotated, Literal

from msgspec import Meta

from runtime.core.section import Section
from runtime.model.draws import Nearby, among
from runtime.model.quantities import Count, Gbs, GridSize, LengthMm, Mm, Ns, Point, Side

Corner = Literal["NW", "NE", "SW", "SE"]
# Ranges for random machines.
HOLES_MM = ([4.0, 4.0, 8.0, 8.0], [4.0, 2.5, 8.0, 8.0], [2.5, 4.0, 6.0, 8.0])
CORNERS = (["NW"], ["NW", "SE"], ["SE", "NE"], ["NW", "NE", "SW", "SE"])
PePositions = Annotated[tuple[Point, ...], Nearby()]


class SizeMm(Section, frozen=True):
    """Width and height of a die."""

    w: LengthMm
    h: LengthMm


class CornerPositions(Section, frozen=True):
    """The positions of the PEs of each corner, from the north-west corner of the cube."""

    NW: PePositions = ()
    NE: PePositions = ()
    SW: PePositions = ()
    SE: PePositions = ()

    def at(self, corner: Corner) -> tuple[Point, ...]:
        """The positions of one corner, in PE order."""
        return {"NW": self.NW, "NE": self.NE, "SW": self.SW, "SE": self.SE}[corner]


class PeLayout(Section, frozen=True):
    """The PEs of a cube: PE number = index of its corner * `pe_per_corner` + index in it."""

    pe_per_corner: Annotated[Count, among(1, 2)]
    corners: Annotated[tuple[Corner, ...], Meta(min_length=1), among(*CORNERS)]
    pos_mm: CornerPositions


class CubeNoc(Section, frozen=True):
    """The router grid of a cube; there is no router inside the hole `x0, y0, x1, y1`."""

    rows: Annotated[GridSize, among(4, 6, 7)]
    cols: Annotated[GridSize, among(4, 6, 7)]
    hbm_hole_mm: Annotated[tuple[Mm, Mm, Mm, Mm], among(*HOLES_MM)]
    router_overhead_ns: Ns
    link_bw_gbs: Gbs


class SidePositions(Section, frozen=True):
    """The positions of the UCIe ports, from the north-west corner of the cube."""

    N: Point
    S: Point
    W: Point
    E: Point

    def at(self, side: Side) -> Point:
        """The position of one side's port."""
        return {"N": self.N, "S": self.S, "W": self.W, "E": self.E}[side]


class MCpuConfig(Section, frozen=True):
    """The management CPU of a cube."""

    pos_mm: Point
    overhead_ns: Ns
    to_router_bw_gbs: Gbs


class SramConfig(Section, frozen=True):
    """The SRAM that the PEs of a cube share."""

    pos_mm: Point
    overhead_ns: Ns


class HbmCtrl(Section, frozen=True):
    """The controller of one HBM slice."""

    overhead_ns: Ns
    latency_ns: Ns
    efficiency: Annotated[float, Meta(ge=1e-3, le=1), among(0.5, 0.8, 1)]
    switch_penalty_ns: Ns


class CubeConfig(Section, frozen=True):
    """A compute die with its HBM stack."""

    size_mm: SizeMm
    pe_layout: PeLayout
    noc: CubeNoc
    ucie_pos_mm: SidePositions
    m_cpu: MCpuConfig
    sram_mb: Count
    sram_to_router_bw_gbs: Gbs
    sram: SramConfig
    hbm_ctrl: HbmCtrl
