"""Routes derived from the floor plan in the topology file, independently of the simulator.

The rules are those of `docs/model.md`: columns before rows; around the hole in the router grid by
the shorter side; components at the nearest router, ties to the lowest row, then column; from cube
to cube by the UCIe ports of the sides that face each other.
"""

from fractions import Fraction

from kernbench.theory.routes import (
    HOST_TO_IO,
    IO_TO_HOST,
    MESH_GBS,
    PE_GBS,
    ROUTER_NS,
    SRAM_GBS,
    TO_NEXT_SIP,
    TO_XBAR,
    XBAR_TO_HBM,
    XBAR_TO_PE,
    XBAR_TO_ROUTER,
    KeyedHop,
    Route,
    cube_to_io,
    io_to_cube,
    through_switch,
    to_next_cube,
)
from kernbench.theory.topology_file import TopologyFile
from runtime.core.simtime import exact

Cell = tuple[int, int]
"""Row and column of a router."""
Stem = tuple[Cell, str]
"""The router that a component is attached to, and the length of the wire to it in mm."""

OPPOSITE = {"N": "S", "S": "N", "W": "E", "E": "W"}
HALF = Fraction(1, 2)


class CubeFloorPlan:
    """The floor plan of one cube: its routers, the components at them, and the hops between two."""

    def __init__(self, file: TopologyFile) -> None:
        self._file = file
        self._rows, self._cols = file["cube.noc.rows"], file["cube.noc.cols"]
        self._pitch_x = file.number("cube.size_mm.w") / self._cols
        self._pitch_y = file.number("cube.size_mm.h") / self._rows
        x0, y0, x1, y1 = map(exact, file["cube.noc.hbm_hole_mm"])
        # A router is missing where the centre of its cell is inside the hole.
        self._hole_rows = [row for row in range(self._rows) if y0 < self._centre((row, 0))[1] < y1]
        self._hole_cols = [col for col in range(self._cols) if x0 < self._centre((0, col))[0] < x1]
        # Routes begin and end at few positions: the router of each is searched once.
        self._stems: dict[tuple[float, ...], Stem] = {}

    def pe(self, pe: int) -> Stem:
        """The router of PE `pe`. PEs are numbered corner by corner."""
        corner, index = divmod(pe, self._file["cube.pe_layout.pe_per_corner"])
        name = self._file["cube.pe_layout.corners"][corner]
        return self._stem(self._file["cube.pe_layout.pos_mm"][name][index])

    def sram(self) -> Stem:
        """The router of the SRAM."""
        return self._stem(self._file["cube.sram.pos_mm"])

    def m_cpu(self) -> Stem:
        """The router of the M_CPU."""
        return self._stem(self._file["cube.m_cpu.pos_mm"])

    def port(self, side: str) -> Stem:
        """The router of the UCIe port on a side: `N`, `E`, `S` or `W`."""
        return self._stem(self._file["cube.ucie_pos_mm"][side])

    def mesh(self, source: Cell, target: Cell) -> Route:
        """The hops between two routers; around the hole where it lies straight between them."""
        (row, col), (to_row, to_col) = source, target
        across, down = abs(to_col - col), abs(to_row - row)
        # Both ends in rows of the hole, on opposite sides: the route leaves these rows and returns,
        # which adds hops down and none across. The second case is the same for columns.
        if _blocked(self._hole_rows, self._hole_cols, (row, to_row), (col, to_col)):
            down = _detour(self._hole_rows, self._rows, row, to_row)
        elif _blocked(self._hole_cols, self._hole_rows, (col, to_col), (row, to_row)):
            across = _detour(self._hole_cols, self._cols, col, to_col)
        hop_x, hop_y = (
            KeyedHop(str(pitch), ROUTER_NS, MESH_GBS) for pitch in (self._pitch_x, self._pitch_y)
        )
        return (hop_x,) * across + (hop_y,) * down

    def path(self, source: Cell, target: Cell) -> list[Cell]:
        """The routers of a shortest path; where several steps shorten it, one along a row."""
        away = {target: 0}
        ring = [target]
        while ring:
            ring = [cell for before in ring for cell in self._beside(before) if cell not in away]
            away |= dict.fromkeys(ring, 1 + max(away.values()))
        found = [source]
        while found[-1] != target:
            nearer = away[found[-1]] - 1
            found.append(next(cell for cell in self._beside(found[-1]) if away[cell] == nearer))
        return found

    def _beside(self, cell: Cell) -> list[Cell]:
        """The routers beside one: W, E, N, S."""
        row, col = cell
        beside = [(row, col - 1), (row, col + 1), (row - 1, col), (row + 1, col)]
        return [
            each
            for each in beside
            if 0 <= each[0] < self._rows and 0 <= each[1] < self._cols and not self._in_hole(each)
        ]

    def _centre(self, cell: Cell) -> tuple[Fraction, Fraction]:
        return (cell[1] + HALF) * self._pitch_x, (cell[0] + HALF) * self._pitch_y

    def _stem(self, position: list[float]) -> Stem:
        key = tuple(position)
        if key not in self._stems:
            self._stems[key] = self._nearest(position)
        return self._stems[key]

    def _nearest(self, position: list[float]) -> Stem:
        x_mm, y_mm = map(exact, position)

        def distance_mm(cell: Cell) -> Fraction:
            centre_x, centre_y = self._centre(cell)
            return abs(centre_x - x_mm) + abs(centre_y - y_mm)

        cells = [(row, col) for row in range(self._rows) for col in range(self._cols)]
        # min() returns the first of equal cells, and cells are in order: the tie rule of the model.
        nearest = min((cell for cell in cells if not self._in_hole(cell)), key=distance_mm)
        return nearest, str(distance_mm(nearest))

    def _in_hole(self, cell: Cell) -> bool:
        return cell[0] in self._hole_rows and cell[1] in self._hole_cols


class FloorPlan:
    """The routes of a whole system. SIPs and cubes are numbered, PEs are numbered in their cube."""

    def __init__(self, file: TopologyFile) -> None:
        self.cube = CubeFloorPlan(file)
        self._columns, self._rows = file["sip.cube_mesh.w"], file["sip.cube_mesh.h"]
        self._edge: str = file["sip.io_chiplet.edge"]
        self._next_sip = TO_NEXT_SIP if file["system.sips.fabric"] == "direct" else through_switch()

    def own_slice(self) -> tuple[Route, Route]:
        """From a PE to its own HBM slice, and back: over their common crossbar."""
        return TO_XBAR + XBAR_TO_HBM, TO_XBAR + XBAR_TO_PE

    def between(self, source: tuple[int, Stem], target: tuple[int, Stem], sips: int = 0) -> Route:
        """From router to router, without the stems; each end is (cube, stem).

        `sips` is the number of links between SIPs on the route.
        """
        (cube, (cell, _)), (to_cube, (to_cell, _)) = source, target
        if sips:
            return self.out(cube, cell) + self._next_sip * sips + self.into(to_cube, to_cell)
        (column, row), (to_column, to_row) = self._coordinates(cube), self._coordinates(to_cube)
        # Dimension order between cubes, as between routers: columns before rows.
        sides = ["E" if to_column > column else "W"] * abs(to_column - column)
        sides += ["S" if to_row > row else "N"] * abs(to_row - row)
        return self._cross(cell, sides, to_cell)

    def between_pes(self, source: tuple[int, int], target: tuple[int, int], sips: int = 0) -> Route:
        """From PE to PE, each given as (cube, PE); over `sips` links between SIPs."""
        (cube, pe), (to_cube, to_pe) = source, target
        stem, to_stem = self.cube.pe(pe), self.cube.pe(to_pe)
        between = self.between((cube, stem), (to_cube, to_stem), sips)
        return pe_stem(stem)[0] + between + pe_stem(to_stem)[1]

    def from_host(self, cube: int, cell: Cell) -> Route:
        """From the host to a router of a cube."""
        return HOST_TO_IO + self.into(cube, cell)

    def to_host(self, cube: int, cell: Cell) -> Route:
        """From a router of a cube to the host."""
        return self.out(cube, cell) + IO_TO_HOST

    def into(self, cube: int, cell: Cell) -> Route:
        """From the IO NoC to a router, straight along the column or row of its cube."""
        entry, mm = self.cube.port(self._edge)
        return io_to_cube(mm) + self._cross(entry, [OPPOSITE[self._edge]] * self._depth(cube), cell)

    def out(self, cube: int, cell: Cell) -> Route:
        """From a router to the IO NoC."""
        exit_cell, mm = self.cube.port(self._edge)
        return self._cross(cell, [self._edge] * self._depth(cube), exit_cell) + cube_to_io(mm)

    def _cross(self, cell: Cell, sides: list[str], target: Cell) -> Route:
        """From a router out of its cube by `sides[0]`, out of the next one by `sides[1]`, etc."""
        route: Route = ()
        for side in sides:
            (leave, out_mm), (enter, in_mm) = self.cube.port(side), self.cube.port(OPPOSITE[side])
            route += self.cube.mesh(cell, leave) + to_next_cube(out_mm, in_mm)
            # The next cube starts at the router of the port on the opposite side.
            cell = enter
        return route + self.cube.mesh(cell, target)

    def _coordinates(self, cube: int) -> tuple[int, int]:
        """Column and row of a cube."""
        return cube % self._columns, cube // self._columns

    def _depth(self, cube: int) -> int:
        """Number of cubes between `cube` and the IO chiplet."""
        column, row = self._coordinates(cube)
        last_column, last_row = self._columns - 1, self._rows - 1
        depths = {"N": row, "S": last_row - row, "W": column, "E": last_column - column}
        return depths[self._edge]


def pe_stem(stem: Stem) -> tuple[Route, Route]:
    """From a PE to its router, and from the router to the PE."""
    return (KeyedHop(stem[1], ROUTER_NS, PE_GBS),), (KeyedHop(stem[1], "0", PE_GBS),)


def sram_stem(stem: Stem) -> tuple[Route, Route]:
    """From an SRAM to its router, and from the router to the SRAM."""
    into = KeyedHop(stem[1], "cube.sram.overhead_ns", SRAM_GBS)
    return (KeyedHop(stem[1], ROUTER_NS, SRAM_GBS),), (into,)


def slice_stem() -> tuple[Route, Route]:
    """From an HBM slice to its router, and back; the crossbar is beside the router."""
    return TO_XBAR + XBAR_TO_ROUTER, TO_XBAR + XBAR_TO_HBM


def _blocked(rows: list[int], cols: list[int], row_ends: Cell, col_ends: Cell) -> bool:
    """Whether both ends lie in rows of the hole, on opposite sides of it."""
    if not rows or not cols:
        return False
    in_hole_rows = all(row in rows for row in row_ends)
    return in_hole_rows and min(col_ends) < cols[0] and max(col_ends) > cols[-1]


def _detour(hole: list[int], size: int, start: int, end: int) -> int:
    """Hops to the edge before or behind the hole and back: the fewer ones that lie on the grid."""
    edges = [edge for edge in (hole[0] - 1, hole[-1] + 1) if 0 <= edge < size]
    return min(abs(edge - start) + abs(edge - end) for edge in edges)
