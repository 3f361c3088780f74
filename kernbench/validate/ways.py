"""The ways between components, worked out from the floor plan in the topology file and from nothing of the product.

The rules are those of `docs/model.md`: columns before rows, shortest way round the hole in the router grid, components on the
nearest router (ties to the lowest row, then column), cubes crossed from port to port.
"""

from fractions import Fraction

from kernbench.validate.closed_form import (
    HOST_TO_IO,
    IO,
    IO_TO_HOST,
    MESH_GBS,
    ROUTER_NS,
    TO_NEXT_SIP,
    TO_XBAR,
    UCIE_GBS,
    UCIE_NS,
    XBAR_TO_HBM,
    XBAR_TO_PE,
    XBAR_TO_ROUTER,
    Hop,
    Way,
    through_switch,
)
from kernbench.validate.variant import Variant

Cell = tuple[int, int]
"""Row and column of a router."""
Stem = tuple[Cell, str]
"""The router of a component, and the wire to it in mm."""

OPPOSITE = {"N": "S", "S": "N", "W": "E", "E": "W"}
STEP = {"N": (0, -1), "S": (0, 1), "W": (-1, 0), "E": (1, 0)}


class Cube:
    """The floor plan of one cube: routers, what hangs on them, and the steps between two routers."""

    def __init__(self, file: Variant) -> None:
        self._file = file
        self._rows, self._cols = file["cube.noc.rows"], file["cube.noc.cols"]
        self._pitch_x = _exact(file["cube.size_mm.w"]) / self._cols
        self._pitch_y = _exact(file["cube.size_mm.h"]) / self._rows
        x0, y0, x1, y1 = map(_exact, file["cube.noc.hbm_hole_mm"])
        self._hole_rows = [row for row in range(self._rows) if y0 < self._centre((row, 0))[1] < y1]
        self._hole_cols = [col for col in range(self._cols) if x0 < self._centre((0, col))[0] < x1]

    def pe(self, pe: int) -> Stem:
        """Where PE `pe` hangs."""
        corner, place = divmod(pe, self._file["cube.pe_layout.pe_per_corner"])
        name = self._file["cube.pe_layout.corners"][corner]
        return self._stem(self._file["cube.pe_layout.pos_mm"][name][place])

    def sram(self) -> Stem:
        """Where the SRAM hangs."""
        return self._stem(self._file["cube.sram.pos_mm"])

    def port(self, side: str) -> Stem:
        """Where the UCIe port of a side hangs."""
        return self._stem(self._file["cube.ucie_pos_mm"][side])

    def mesh(self, source: Cell, target: Cell) -> Way:
        """The steps between two routers; where the hole lies straight between them, round it by the shorter side."""
        (row, col), (to_row, to_col) = source, target
        across, down = abs(to_col - col), abs(to_row - row)
        if _blocked(self._hole_rows, self._hole_cols, (row, to_row), (col, to_col)):
            down = _detour(self._hole_rows, self._rows, row, to_row)
        elif _blocked(self._hole_cols, self._hole_rows, (col, to_col), (row, to_row)):
            across = _detour(self._hole_cols, self._cols, col, to_col)
        step_x, step_y = (
            Hop(str(pitch), ROUTER_NS, MESH_GBS) for pitch in (self._pitch_x, self._pitch_y)
        )
        return (step_x,) * across + (step_y,) * down

    def _centre(self, cell: Cell) -> tuple[Fraction, Fraction]:
        return (cell[1] + Fraction(1, 2)) * self._pitch_x, (
            cell[0] + Fraction(1, 2)
        ) * self._pitch_y

    def _stem(self, position: list[float]) -> Stem:
        def far(cell: Cell) -> Fraction:
            return sum(
                (abs(a - _exact(b)) for a, b in zip(self._centre(cell), position, strict=True)),
                Fraction(0),
            )

        cells = [(row, col) for row in range(self._rows) for col in range(self._cols)]
        nearest = min((cell for cell in cells if not self._in_hole(cell)), key=far)
        return nearest, str(far(nearest))

    def _in_hole(self, cell: Cell) -> bool:
        return cell[0] in self._hole_rows and cell[1] in self._hole_cols


class FloorPlan:
    """The ways of a whole system. SIPs and cubes are numbers, PEs count within their cube."""

    def __init__(self, file: Variant) -> None:
        self.cube = Cube(file)
        self._columns, self._rows = file["sip.cube_mesh.w"], file["sip.cube_mesh.h"]
        self._edge: str = file["sip.io_chiplet.edge"]
        self._next_sip = TO_NEXT_SIP if file["system.sips.fabric"] == "direct" else through_switch()

    def own_slice(self) -> tuple[Way, Way]:
        """From a PE to its own HBM slice, and back: through their crossbar."""
        return TO_XBAR + XBAR_TO_HBM, TO_XBAR + XBAR_TO_PE

    def between(self, source: tuple[int, Stem], target: tuple[int, Stem], sips: int = 0) -> Way:
        """From router to router, without the stems; `sips` remaining_hops between SIPs are on the way."""
        (cube, (cell, _)), (to_cube, (to_cell, _)) = source, target
        if sips:
            return self.out(cube, cell) + self._next_sip * sips + self.into(to_cube, to_cell)
        (column, row), (to_column, to_row) = self._place(cube), self._place(to_cube)
        sides = ["E" if to_column > column else "W"] * abs(to_column - column)
        sides += ["S" if to_row > row else "N"] * abs(to_row - row)
        return self._cross(cell, sides, to_cell)

    def from_host(self, cube: int, cell: Cell) -> Way:
        """From the host to a router of a cube."""
        return HOST_TO_IO + self.into(cube, cell)

    def to_host(self, cube: int, cell: Cell) -> Way:
        """Back to the host."""
        return self.out(cube, cell) + IO_TO_HOST

    def into(self, cube: int, cell: Cell) -> Way:
        """From the IO NoC to a router, straight along the column or row of its cube."""
        entry, mm = self.cube.port(self._edge)
        hops = (Hop("0", UCIE_NS), Hop(IO + "gap_mm", UCIE_NS, UCIE_GBS), Hop(mm, ROUTER_NS))
        return hops + self._cross(entry, [OPPOSITE[self._edge]] * self._depth(cube), cell)

    def out(self, cube: int, cell: Cell) -> Way:
        """From a router to the IO NoC."""
        exit_cell, mm = self.cube.port(self._edge)
        hops = (
            Hop(mm, UCIE_NS),
            Hop(IO + "gap_mm", UCIE_NS, UCIE_GBS),
            Hop("0", IO + "noc.overhead_ns"),
        )
        return self._cross(cell, [self._edge] * self._depth(cube), exit_cell) + hops

    def _cross(self, cell: Cell, sides: list[str], target: Cell) -> Way:
        way: Way = ()
        for side in sides:
            (leave, out_mm), (enter, in_mm) = self.cube.port(side), self.cube.port(OPPOSITE[side])
            crossing = (
                Hop(out_mm, UCIE_NS),
                Hop("sip.cube_gap_mm", UCIE_NS, UCIE_GBS),
                Hop(in_mm, ROUTER_NS),
            )
            way += self.cube.mesh(cell, leave) + crossing
            cell = enter
        return way + self.cube.mesh(cell, target)

    def _place(self, cube: int) -> tuple[int, int]:
        return cube % self._columns, cube // self._columns

    def _depth(self, cube: int) -> int:
        """Cubes between `cube` and the IO chiplet."""
        column, row = self._place(cube)
        return {"N": row, "S": self._rows - 1 - row, "W": column, "E": self._columns - 1 - column}[
            self._edge
        ]


def pe_stem(stem: Stem) -> tuple[Way, Way]:
    """From a PE to its router, and from there to the PE."""
    return (Hop(stem[1], ROUTER_NS, "pe.to_router_bw_gbs"),), (
        Hop(stem[1], "0", "pe.to_router_bw_gbs"),
    )


def sram_stem(stem: Stem) -> tuple[Way, Way]:
    """The same of an SRAM."""
    gbs = "cube.sram_to_router_bw_gbs"
    return (Hop(stem[1], ROUTER_NS, gbs),), (Hop(stem[1], "cube.sram.overhead_ns", gbs),)


def slice_stem() -> tuple[Way, Way]:
    """The same of an HBM slice, whose crossbar is beside the router."""
    return TO_XBAR + XBAR_TO_ROUTER, TO_XBAR + XBAR_TO_HBM


def _blocked(rows: list[int], cols: list[int], row_ends: Cell, col_ends: Cell) -> bool:
    """Whether both ends lie in rows of the hole, on opposite sides of it."""
    if not rows or not cols:
        return False
    return (
        all(row in rows for row in row_ends)
        and min(col_ends) < cols[0]
        and max(col_ends) > cols[-1]
    )


def _detour(hole: list[int], size: int, start: int, end: int) -> int:
    """Steps before and behind the hole, whichever are fewer and lie on the grid."""
    before, behind = hole[0] - 1, hole[-1] + 1
    edges = [edge for edge in (before, behind) if 0 <= edge < size]
    return min(abs(edge - start) + abs(edge - end) for edge in edges)


def _exact(value: float) -> Fraction:
    return Fraction(str(value))
