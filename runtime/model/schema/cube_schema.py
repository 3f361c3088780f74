"""The part of the schema of `topology.yaml` that describes a cube, key `cube`."""

from typing import Annotated, Literal

from msgspec import Meta

from runtime.core.config.section import Section
from runtime.model.schema.draws import Nearby, among
from runtime.model.schema.meanings import WHAT_IF, ActsOn
from runtime.model.schema.quantities import (
    Count,
    DelayNs,
    Gbs,
    GridSize,
    LengthMm,
    Mm,
    Ns,
    Point,
    Side,
)

Corner = Literal["NW", "NE", "SW", "SE"]
# Ranges for random machines.
HOLES_MM = ([4.0, 4.0, 8.0, 8.0], [4.0, 2.5, 8.0, 8.0], [2.5, 4.0, 6.0, 8.0])
CORNERS = (["NW"], ["NW", "SE"], ["SE", "NE"], ["NW", "NE", "SW", "SE"])
PePositions = Annotated[tuple[Point, ...], Nearby()]


class SizeMm(Section, frozen=True):
    """Width and height of a die."""

    w: Annotated[LengthMm, ActsOn("width of a cube")]
    h: Annotated[LengthMm, ActsOn("height of a cube")]


class CornerPositions(Section, frozen=True):
    """The positions of the PEs of each corner, from the north-west corner of the cube."""

    NW: Annotated[PePositions, ActsOn("x, y of the PEs in the north-west corner")] = ()
    NE: Annotated[PePositions, ActsOn("x, y of the PEs in the north-east corner")] = ()
    SW: Annotated[PePositions, ActsOn("x, y of the PEs in the south-west corner")] = ()
    SE: Annotated[PePositions, ActsOn("x, y of the PEs in the south-east corner")] = ()

    def at(self, corner: Corner) -> tuple[Point, ...]:
        """The positions of one corner, in PE order."""
        return {"NW": self.NW, "NE": self.NE, "SW": self.SW, "SE": self.SE}[corner]


class PeLayout(Section, frozen=True):
    """The PEs of a cube: PE number = index of its corner * `pe_per_corner` + index in it."""

    pe_per_corner: Annotated[Count, among(1, 2), ActsOn("PEs of a corner")]
    corners: Annotated[
        tuple[Corner, ...],
        Meta(min_length=1),
        among(*CORNERS),
        ActsOn("corners of a cube that have PEs"),
    ]
    pos_mm: CornerPositions


class CubeNoc(Section, frozen=True):
    """The router grid of a cube; there is no router inside the hole `x0, y0, x1, y1`."""

    rows: Annotated[GridSize, among(4, 6, 7), ActsOn("rows of routers in a cube")]
    cols: Annotated[GridSize, among(4, 6, 7), ActsOn("columns of routers in a cube")]
    hbm_hole_mm: Annotated[
        tuple[Mm, Mm, Mm, Mm],
        among(*HOLES_MM),
        ActsOn("x0, y0, x1, y1 of the HBM stack, without routers"),
    ]
    router_overhead_ns: Annotated[DelayNs, ActsOn("a router of a cube"), WHAT_IF]
    link_bw_gbs: Annotated[Gbs, ActsOn("each direction of a link between routers"), WHAT_IF]


class SidePositions(Section, frozen=True):
    """The positions of the UCIe ports, from the north-west corner of the cube."""

    N: Annotated[Point, ActsOn("x, y of the UCIe port to the north")]
    S: Annotated[Point, ActsOn("x, y of the UCIe port to the south")]
    W: Annotated[Point, ActsOn("x, y of the UCIe port to the west")]
    E: Annotated[Point, ActsOn("x, y of the UCIe port to the east")]

    def at(self, side: Side) -> Point:
        """The position of one side's port."""
        return {"N": self.N, "S": self.S, "W": self.W, "E": self.E}[side]


class MCpuConfig(Section, frozen=True):
    """The management CPU of a cube."""

    pos_mm: Annotated[Point, ActsOn("x, y of the management CPU")]
    overhead_ns: Annotated[DelayNs, ActsOn("management CPU of a cube")]
    to_router_bw_gbs: Annotated[Gbs, ActsOn("link of the management CPU")]


class SramConfig(Section, frozen=True):
    """The SRAM that the PEs of a cube share."""

    pos_mm: Annotated[Point, ActsOn("x, y of the SRAM")]
    overhead_ns: Annotated[DelayNs, ActsOn("SRAM of a cube")]


class HbmCtrl(Section, frozen=True):
    """The controller of one HBM slice."""

    overhead_ns: Annotated[DelayNs, ActsOn("HBM controller")]
    latency_ns: Annotated[DelayNs, ActsOn("from a read request to its first byte"), WHAT_IF]
    efficiency: Annotated[
        float,
        Meta(ge=1e-3, le=1),
        among(0.5, 0.8, 1),
        ActsOn("share of the raw bandwidth of a slice"),
    ]
    switch_penalty_ns: Annotated[Ns, ActsOn("change of a channel between reads and writes")]


class CubeConfig(Section, frozen=True):
    """A compute die with its HBM stack."""

    size_mm: SizeMm
    pe_layout: PeLayout
    noc: CubeNoc
    ucie_pos_mm: SidePositions
    m_cpu: MCpuConfig
    sram_mb: Annotated[Count, ActsOn("SRAM of a cube")]
    sram_to_router_bw_gbs: Annotated[Gbs, ActsOn("link of the SRAM")]
    sram: SramConfig
    hbm_ctrl: HbmCtrl
