"""Routes derived from the floor plan in the topology file, independently of the simulator.

The rules are those of `docs/model.md`: columns before rows; around the hole in the router grid by a
shortest path; components at the nearest router, ties to the lowest row, then column; from cube to
cube by the UCIe ports of the sides that face each other; between SIPs by the paths of `sip_grid`.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from kernbench.oracle.theory.parts import PartNumbers
from kernbench.oracle.theory.paths.detours import OPPOSITE, SipDetours, sip_path
from kernbench.oracle.theory.paths.routes import (
    HOST_TO_IO,
    IO_TO_HOST,
    M_CPU_GBS,
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
    RouteEnd,
    cube_to_io,
    in_sip,
    into,
    io_to_cube,
    through_switch,
    to_next_cube,
)
from kernbench.oracle.theory.paths.sip_grid import SipGrid
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.simtime import exact

Cell = tuple[int, int]
"""Row and column of a router."""
DeadLinks = frozenset[frozenset[Cell]]
"""Links between routers that are down, each as its two ends."""
Stem = tuple[Cell, str]
"""The router that a component is attached to, and the length of the wire to it in mm."""

HALF = Fraction(1, 2)
_IO_CHAIN = ("host", "pcie_ep", "io_cpu", "io_noc")
_IO_NOC = RouteEnd("io_noc")


class CubeFloorPlan:
    """The floor plan of one cube: its routers, the components at them, and the hops between two."""

    def __init__(self, file: TopologyFile) -> None:
        self._file = file
        self._rows, self._cols = file["cube.noc.rows"], file["cube.noc.cols"]
        self._pitch_x = file.number("cube.size_mm.w") / self._cols
        self._pitch_y = file.number("cube.size_mm.h") / self._rows
        self._hop_mm = str(self._pitch_x), str(self._pitch_y)
        x0, y0, x1, y1 = map(exact, file["cube.noc.hbm_hole_mm"])
        # A router is missing where the centre of its cell is inside the hole.
        self._hole_rows = [row for row in range(self._rows) if y0 < self._centre((row, 0))[1] < y1]
        self._hole_cols = [col for col in range(self._cols) if x0 < self._centre((0, col))[0] < x1]
        # Routes begin and end at few positions: the router of each is searched once.
        self._stems: dict[tuple[float, ...], Stem] = {}
        self._away: dict[tuple[Cell, DeadLinks], dict[Cell, int]] = {}

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

    def mesh(
        self, source: Cell, target: Cell, cube: int = 0, dead: DeadLinks = frozenset()
    ) -> Route:
        """The hops between two routers of a cube, from each router of the path to the next one."""
        return tuple(
            KeyedHop(self._hop_mm[here[1] == to[1]], ROUTER_NS, MESH_GBS, router_name(cube, to))
            for here, to in pairwise(self.path(source, target, dead))
        )

    def path(self, source: Cell, target: Cell, dead: DeadLinks = frozenset()) -> list[Cell]:
        """The routers of a shortest path; where several steps shorten it, one along a row.

        It takes none of the links that are `dead`.
        """
        away = self._distances(target, dead)
        path = [source]
        while path[-1] != target:
            here, nearer = path[-1], away[path[-1]] - 1
            path.append(
                next(
                    cell
                    for cell in self._beside(here)
                    if away.get(cell) == nearer and frozenset((here, cell)) not in dead
                )
            )
        return path

    def dead_links(self, cube: int, detours: SipDetours) -> DeadLinks:
        """The links between routers of a cube that are down."""
        cells = [(row, col) for row in range(self._rows) for col in range(self._cols)]
        return frozenset(
            frozenset((cell, beside))
            for cell in cells
            for beside in self._beside(cell)
            if not self._in_hole(cell) and detours.is_dead_link(cube, (cell, beside))
        )

    def _distances(self, target: Cell, dead: DeadLinks) -> dict[Cell, int]:
        """The hops from each router to a target."""
        if (target, dead) not in self._away:
            away, ring = {target: 0}, [target]
            while ring:
                beside = {
                    cell
                    for near in ring
                    for cell in self._beside(near)
                    if cell not in away and frozenset((near, cell)) not in dead
                }
                away |= dict.fromkeys(beside, 1 + away[ring[0]])
                ring = sorted(beside)
            self._away[target, dead] = away
        return self._away[target, dead]

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
        self._file = file
        self.cube = CubeFloorPlan(file)
        self._columns, self._rows = file["sip.cube_mesh.w"], file["sip.cube_mesh.h"]
        self._edge: str = file["sip.io_chiplet.edge"]
        self._routes = dict[tuple[RouteEnd, RouteEnd], Route]()
        self._parts = PartNumbers(file)
        self._detours = dict[int, SipDetours]()
        self._dead = dict[tuple[int, int], DeadLinks]()
        self.is_switched: bool = file["system.sips.fabric"] == "switch"

    def route(self, source: RouteEnd, target: RouteEnd) -> Route:
        """The route between two components of any two SIPs."""
        if (source, target) not in self._routes:
            route = self._over(source, target, self.sip_path(source.sip, target.sip))
            self._routes[source, target] = route
        return self._routes[source, target]

    def sip_path(self, source: int, target: int) -> Sequence[int]:
        """The SIPs of a route, both ends included; through a switch every SIP is a neighbour."""
        if source == target:
            return [source]
        if self.is_switched:
            return [source, target]
        if self._parts.has_down:
            return sip_path(self._sips, self._parts, source, target)
        return self._sips.path(source, target)

    def sip_distance(self, source: int, target: int) -> int:
        """The crossings on that route."""
        if self._parts.has_down:
            return len(self.sip_path(source, target)) - 1
        return int(source != target) if self.is_switched else self._sips.distance(source, target)

    def neighbours(self, sip: int) -> list[int]:
        """The SIPs to which a SIP has a link, or one over the switch."""
        sips = range(self._file["system.sips.count"])
        return [other for other in sips if self.sip_distance(sip, other) == 1]

    def own_slice(self) -> tuple[Route, Route]:
        """Routes from a PE to its own HBM slice and back, over their common crossbar."""
        pe, hbm = RouteEnd("pe", 0, 0, 0), RouteEnd("hbm", 0, 0, 0)
        return self.route(pe, hbm), self.route(hbm, pe)

    def between_pes(self, source: tuple[int, int], target: tuple[int, int], sips: int = 0) -> Route:
        """The route between PEs, given as (cube, PE), over `sips` links between SIPs in a row."""
        ends = RouteEnd("pe", 0, *source), RouteEnd("pe", sips, *target)
        return self._over(*ends, range(sips + 1))

    @cached_property
    def _sips(self) -> SipGrid:
        return SipGrid.of(self._file)

    def _over(self, source: RouteEnd, target: RouteEnd, sips: Sequence[int]) -> Route:
        """The route over these SIPs."""
        if len(sips) == 1:
            return in_sip(sips[0], self._inside(sips[0], source, target))
        route = in_sip(sips[0], self._inside(sips[0], source, _IO_NOC))
        for sip, neighbour in pairwise(sips):
            route += self.crossing(sip, neighbour)
        return route + in_sip(sips[-1], self._inside(sips[-1], _IO_NOC, target))

    def crossing(self, sip: int, neighbour: int) -> Route:
        """The hops from the IO NoC of a SIP to that of its neighbour."""
        out, enter = f"io.ucie.sip{neighbour}", f"io.ucie.sip{sip}"
        if self.is_switched:
            first, to_switch, *rest = into(through_switch(), out, "switch", enter, "io.io_noc")
            return *in_sip(sip, (first,)), to_switch, *in_sip(neighbour, tuple(rest))
        first, *rest = into(TO_NEXT_SIP, out, enter, "io.io_noc")
        return *in_sip(sip, (first,)), *in_sip(neighbour, tuple(rest))

    def _inside(self, sip: int, source: RouteEnd, target: RouteEnd) -> Route:
        """The route between two components of a SIP, named as those of SIP 0."""
        if source.cube < 0 and target.cube < 0:
            return _io_chain(source.kind, target.kind)
        if source.cube < 0:
            cell, _, stem = self._stem(target)
            return _io_chain(source.kind, "io_noc") + self._from_noc(sip, target.cube, cell) + stem
        if target.cube < 0:
            cell, stem, _ = self._stem(source)
            return stem + self._to_noc(sip, source.cube, cell) + _io_chain("io_noc", target.kind)
        if (source.cube, source.pe) == (target.cube, target.pe):
            pe = f"cube{source.cube}.pe{source.pe}"
            if (source.kind, target.kind) == ("pe", "hbm"):
                return into(TO_XBAR + XBAR_TO_HBM, f"{pe}.xbar", target.name)
            if (source.kind, target.kind) == ("hbm", "pe"):
                return into(TO_XBAR + XBAR_TO_PE, f"{pe}.xbar", target.name)
        (cell, stem_out, _), (to_cell, _, stem_in) = self._stem(source), self._stem(target)
        sides = self._of_sip(sip).between(source.cube, target.cube)
        return stem_out + self._cross(sip, source.cube, cell, sides, to_cell) + stem_in

    def _of_sip(self, sip: int) -> SipDetours:
        # Where nothing is down, all SIPs are alike.
        number = sip if self._parts.has_down else 0
        if number not in self._detours:
            self._detours[number] = SipDetours(self._file, self._parts, number)
        return self._detours[number]

    def _mesh(self, sip: int, cube: int, source: Cell, target: Cell) -> Route:
        """The hops between two routers of a cube, over links that are not down."""
        if not self._parts.has_down:
            return self.cube.mesh(source, target, cube)
        if (sip, cube) not in self._dead:
            self._dead[sip, cube] = self.cube.dead_links(cube, self._of_sip(sip))
        return self.cube.mesh(source, target, cube, self._dead[sip, cube])

    def _stem(self, end: RouteEnd) -> tuple[Cell, Route, Route]:
        """The router of a component, the hops from the component to it, and those back."""
        name = end.name
        match end.kind:
            case "hbm":
                # The crossbar is beside the router, and has a port of its own there.
                cell, _ = self.cube.pe(end.pe)
                xbar, router = f"cube{end.cube}.pe{end.pe}.xbar", router_name(end.cube, cell)
                out = into(TO_XBAR + XBAR_TO_ROUTER, xbar, router)
                return cell, out, into(TO_XBAR + XBAR_TO_HBM, xbar, name)
            case "sram":
                (cell, mm), gbs, overhead_ns = self.cube.sram(), SRAM_GBS, "cube.sram.overhead_ns"
            case "m_cpu":
                (cell, mm), gbs, overhead_ns = (
                    self.cube.m_cpu(),
                    M_CPU_GBS,
                    "cube.m_cpu.overhead_ns",
                )
            case _:
                (cell, mm), gbs, overhead_ns = self.cube.pe(end.pe), PE_GBS, "0"
        out = KeyedHop(mm, ROUTER_NS, gbs, router_name(end.cube, cell))
        return cell, (out,), (KeyedHop(mm, overhead_ns, gbs, name),)

    def _from_noc(self, sip: int, cube: int, cell: Cell) -> Route:
        """Route from the IO NoC to a router, straight along the column or row of its cube."""
        entry, mm = self.cube.port(self._edge)
        first, inwards = self._of_sip(sip).from_io(cube)
        crossing = into(
            io_to_cube(mm),
            self._io_port(first),
            f"cube{first}.ucie.{self._edge}",
            router_name(first, entry),
        )
        return crossing + self._cross(sip, first, entry, inwards, cell)

    def _to_noc(self, sip: int, cube: int, cell: Cell) -> Route:
        """Route from a router to the IO NoC."""
        leave, mm = self.cube.port(self._edge)
        *inside, _ = self._of_sip(sip).to_io(cube)
        last = cube + sum(map(self._step, inside))
        port = f"cube{last}.ucie.{self._edge}"
        crossing = into(cube_to_io(mm), port, self._io_port(last), "io.io_noc")
        return self._cross(sip, cube, cell, inside, leave) + crossing

    def _step(self, side: str) -> int:
        """The distance of the number of the next cube on a side."""
        return {"E": 1, "W": -1, "S": self._columns, "N": -self._columns}[side]

    def _cross(self, sip: int, cube: int, cell: Cell, sides: Sequence[str], target: Cell) -> Route:
        """Route from a router out of its cube by `sides[0]`, of the next one by `sides[1]`, etc."""
        route: Route = ()
        for side in sides:
            (leave, out_mm), (enter, in_mm) = self.cube.port(side), self.cube.port(OPPOSITE[side])
            beside = cube + self._step(side)
            # The next cube starts at the router of the port on the opposite side.
            route += self._mesh(sip, cube, cell, leave) + into(
                to_next_cube(out_mm, in_mm),
                f"cube{cube}.ucie.{side}",
                f"cube{beside}.ucie.{OPPOSITE[side]}",
                router_name(beside, enter),
            )
            cube, cell = beside, enter
        return route + self._mesh(sip, cube, cell, target)

    def _coordinates(self, cube: int) -> tuple[int, int]:
        """Column and row of a cube."""
        return cube % self._columns, cube // self._columns

    def _io_port(self, cube: int) -> str:
        """The port of the IO chiplet in the column or row of a cube."""
        column, row = self._coordinates(cube)
        return f"io.ucie.mesh{column if self._edge in 'NS' else row}"


def router_name(cube: int, cell: Cell) -> str:
    """The name of a router of a cube."""
    return f"cube{cube}.router.r{cell[0]}c{cell[1]}"


def _io_chain(source: str, target: str) -> Route:
    """The hops between two of host, PCIe endpoint, IO_CPU and IO NoC."""
    begin, end = map(_IO_CHAIN.index, (source, target))
    return HOST_TO_IO[begin:end] if begin <= end else IO_TO_HOST[3 - begin : 3 - end]
