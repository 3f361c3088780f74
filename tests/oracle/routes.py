"""The links of a SIP and the routes over them, from the keys of a topology file.

A node is a tuple of its kind, its cube and more: `("pe", cube, n)`, `("xbar", cube, n)`,
`("hbm", cube, n)`, `("sram", cube)`, `("router", cube, row, column)`, `("ucie", cube, side)`.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import pairwise, product
from typing import Any, NamedTuple

Node = tuple[Any, ...]
Keys = dict[str, Any]
SIDES = {"E": (0, 1), "W": (0, -1), "S": (1, 0), "N": (-1, 0)}
FACING = {"E": "W", "W": "E", "S": "N", "N": "S"}


@cache
def exact(number: float | Fraction) -> Fraction:
    """The decimal number of the file."""
    return Fraction(str(number))


def in_ps(ns: float) -> int:
    """A time of the file, rounded to the nearest picosecond."""
    return round(exact(ns) * 1000)


class Hop(NamedTuple):
    """A link with a bandwidth: the head is there after `before_ps`, and `after_ps` after the start
    of its service at the next link.
    """

    link: tuple[Node, Node]
    gbs: float
    before_ps: int
    after_ps: int


class SipRoutes:
    """The floor plan of a SIP, and the hops between two of its nodes."""

    def __init__(self, keys: Keys) -> None:
        cube, noc, mesh = keys["cube"], keys["cube"]["noc"], keys["sip"]["cube_mesh"]
        self._keys, self._columns = keys, mesh["w"]
        self._overheads_ps = {
            "pe": 0,
            "router": in_ps(noc["router_overhead_ns"]),
            "xbar": in_ps(keys["xbar"]["overhead_ns"]),
            "hbm": in_ps(cube["hbm_ctrl"]["overhead_ns"]),
            "sram": in_ps(cube["sram"]["overhead_ns"]),
            "ucie": in_ps(keys["ucie"]["overhead_ns"]),
        }
        size = cube["size_mm"]
        dx, dy = self._pitch = exact(size["w"]) / noc["cols"], exact(size["h"]) / noc["rows"]
        x0, y0, x1, y1 = map(exact, noc["hbm_hole_mm"])
        centres = {
            (row, column): ((2 * column + 1) * dx / 2, (2 * row + 1) * dy / 2)
            for row, column in product(range(noc["rows"]), range(noc["cols"]))
        }
        self._routers = {
            cell: (x, y) for cell, (x, y) in centres.items() if not (x0 < x < x1 and y0 < y < y1)
        }
        self._nearest = cache(self._nearest_router)
        # By source and target: bandwidth, or None, and delay of the head.
        self._links = dict[tuple[Node, Node], tuple[float | None, int]]()
        # By component: the nodes from it to its router.
        self._stems = dict[Node, list[Node]]()
        for number in range(mesh["h"] * mesh["w"]):
            self._add_cube(number)

    def _add_cube(self, number: int) -> None:
        keys, cube = self._keys, self._keys["cube"]
        link_gbs, gap_mm = cube["noc"]["link_bw_gbs"], exact(keys["sip"]["cube_gap_mm"])
        for cell in self._routers:
            for beside in self._neighbours(cell):
                mm = self._pitch[beside[0] != cell[0]]
                self._join(("router", number, *cell), ("router", number, *beside), mm, link_gbs)
        self._attach(("sram", number), cube["sram"]["pos_mm"], cube["sram_to_router_bw_gbs"])
        for index, position in enumerate(self._pe_positions()):
            pe, xbar, hbm = ((kind, number, index) for kind in ("pe", "xbar", "hbm"))
            self._attach(pe, position, keys["pe"]["to_router_bw_gbs"])
            router = self._stems[pe][-1]
            self._stems[hbm] = [hbm, xbar, router]
            for end in (router, pe, hbm):
                self._join(xbar, end, Fraction(), keys["xbar"]["to_hbm_bw_gbs"])
        for side in SIDES:
            # Between router and port a wire only delays.
            self._attach(("ucie", number, side), cube["ucie_pos_mm"][side], None)
            # One that leaves the mesh of cubes is on no route.
            facing = "ucie", self._beside(number, side), FACING[side]
            self._join(("ucie", number, side), facing, gap_mm, keys["ucie"]["bw_gbs"])

    def _pe_positions(self) -> list[list[float]]:
        layout = self._keys["cube"]["pe_layout"]
        corners = [layout["pos_mm"][each][: layout["pe_per_corner"]] for each in layout["corners"]]
        return [position for corner in corners for position in corner]

    def _attach(self, node: Node, position: list[float], gbs: float | None) -> None:
        """Join a component with its router."""
        mm, cell = self._nearest(*position)
        self._stems[node] = [node, ("router", node[1], *cell)]
        self._join(node, self._stems[node][1], mm, gbs)

    def _nearest_router(self, x: float, y: float) -> tuple[Fraction, Node]:
        """The nearest one; at a tie that of the least row, then column."""
        return min(
            (abs(exact(x) - centre_x) + abs(exact(y) - centre_y), cell)
            for cell, (centre_x, centre_y) in self._routers.items()
        )

    def _join(self, a: Node, b: Node, mm: Fraction, gbs: float | None) -> None:
        wire_ps = round(mm * exact(self._keys["ns_per_mm"]) * 1000)
        for source, target in ((a, b), (b, a)):
            self._links[source, target] = gbs, wire_ps + self._overheads_ps[target[0]]

    def _beside(self, cube: int, side: str) -> int:
        return cube + SIDES[side][0] * self._columns + SIDES[side][1]

    def hops(self, source: Node, target: Node) -> list[Hop]:
        """The links with a bandwidth from a node to another one."""
        hops, before_ps = list[Hop](), 0
        for link in pairwise(self._nodes(source, target)):
            gbs, delay_ps = self._links[link]
            if gbs is not None:
                hops.append(Hop(link, gbs, before_ps, delay_ps))
            elif link[1][0] == "router":
                hops[-1] = hops[-1]._replace(after_ps=hops[-1].after_ps + delay_ps)
            before_ps = delay_ps if gbs is None and link[1][0] == "ucie" else 0
        return hops

    def _nodes(self, source: Node, target: Node) -> list[Node]:
        if source[1:] == target[1:] and {source[0], target[0]} == {"pe", "hbm"}:
            return [source, ("xbar", *source[1:]), target]
        nodes = [*self._stems[source]]
        (row, column), (to_row, to_column) = (
            divmod(node[1], self._columns) for node in (source, target)
        )
        across = ("E" if to_column > column else "W") * abs(to_column - column)
        along = ("S" if to_row > row else "N") * abs(to_row - row)
        for side in across + along:
            cube = nodes[-1][1]
            out = self._stems["ucie", cube, side]
            into = self._stems["ucie", self._beside(cube, side), FACING[side]]
            nodes += [*self._mesh(nodes[-1], out[1]), out[0], *into]
        ingress = self._stems[target][::-1]
        return [*nodes, *self._mesh(nodes[-1], ingress[0]), *ingress[1:]]

    def _mesh(self, source: Node, target: Node) -> Iterator[Node]:
        """The routers after `source` on a shortest path: west or east before north or south."""
        goal, cell = target[2:], source[2:]
        hops, reached = {goal: 0}, [goal]
        for each in reached:
            for near in self._neighbours(each):
                if near not in hops:
                    hops[near] = hops[each] + 1
                    reached.append(near)
        while cell != goal:
            cell = next(near for near in self._neighbours(cell) if hops[near] < hops[cell])
            yield ("router", source[1], *cell)

    def _neighbours(self, cell: Node) -> list[Node]:
        """West, east, north, south."""
        near = [(cell[0] + SIDES[side][0], cell[1] + SIDES[side][1]) for side in "WENS"]
        return [each for each in near if each in self._routers]
