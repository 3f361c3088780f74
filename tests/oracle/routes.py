"""Routes of a SIP from the keys of its topology file: the links of a packet, with their delays.

A node is a tuple that begins with its kind and its cube: `("pe", cube, n)`, `("xbar", cube, n)`,
`("hbm", cube, n)`, `("sram", cube)`, `("router", cube, row, column)`, `("ucie", cube, side)`.
"""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

Node = tuple[Any, ...]
Keys = dict[str, Any]
SIDES = {"E": (1, 0), "W": (-1, 0), "S": (0, 1), "N": (0, -1)}
FACING = {"E": "W", "W": "E", "S": "N", "N": "S"}
STEPS = ((0, -1), (0, 1), (-1, 0), (1, 0))
"""From a router to (row, column) of its neighbours: west, east, north, south."""


class Hop(NamedTuple):
    """A link with a bandwidth. Its bytes may start `before_ps` after the head has arrived, and the
    head is at the next link `after_ps` after the start.
    """

    link: tuple[Node, Node]
    gbs: float
    before_ps: int
    after_ps: int


def exact(number: float | Fraction) -> Fraction:
    """The decimal number of the file."""
    return Fraction(str(number))


def in_ps(ns: float) -> int:
    """A time of the file, rounded to the nearest picosecond."""
    return round(exact(ns) * 1000)


class SipRoutes:
    """The floor plan of a SIP, and the hops between two of its nodes."""

    def __init__(self, keys: Keys) -> None:
        cube, noc = keys["cube"], keys["cube"]["noc"]
        self.keys, self.columns = keys, keys["sip"]["cube_mesh"]["w"]
        size = cube["size_mm"]
        self.pitch = exact(size["w"]) / noc["cols"], exact(size["h"]) / noc["rows"]
        x0, y0, x1, y1 = map(exact, noc["hbm_hole_mm"])
        half = Fraction(1, 2)
        centres = {
            (row, column): ((column + half) * self.pitch[0], (row + half) * self.pitch[1])
            for row in range(noc["rows"])
            for column in range(noc["cols"])
        }
        self.routers = {
            place: (x, y) for place, (x, y) in centres.items() if not (x0 < x < x1 and y0 < y < y1)
        }
        layout = cube["pe_layout"]
        self.pes = [
            position
            for corner in layout["corners"]
            for position in layout["pos_mm"][corner][: layout["pe_per_corner"]]
        ]
        self.overheads_ps = {
            "pe": 0,
            "router": in_ps(noc["router_overhead_ns"]),
            "xbar": in_ps(keys["xbar"]["overhead_ns"]),
            "hbm": in_ps(cube["hbm_ctrl"]["overhead_ns"]),
            "sram": in_ps(cube["sram"]["overhead_ns"]),
            "ucie": in_ps(keys["ucie"]["overhead_ns"]),
        }

    def hops(self, source: Node, target: Node) -> list[Hop]:
        """The links from a node to another one. A wire between router and port only delays."""
        hops, before_ps = list[Hop](), 0
        for link in pairwise(self._nodes(source, target)):
            delay_ps, gbs = self._delay_ps(*link), self._gbs(*link)
            if gbs is not None:
                hops.append(Hop(link, gbs, before_ps, delay_ps))
                before_ps = 0
            elif link[1][0] == "ucie":
                before_ps = delay_ps
            else:
                hops[-1] = hops[-1]._replace(after_ps=hops[-1].after_ps + delay_ps)
        return hops

    def _nodes(self, source: Node, target: Node) -> list[Node]:
        if source[1:] == target[1:] and {source[0], target[0]} == {"pe", "hbm"}:
            return [source, ("xbar", *source[1:]), target]
        nodes = self._stem(source)
        for side in self._sides(source[1], target[1]):
            cube, (dx, dy) = nodes[-1][1], SIDES[side]
            beside = cube + dx + dy * self.columns
            ports: list[Node] = [("ucie", cube, side), ("ucie", beside, FACING[side])]
            exit_router, entry_router = map(self._router, ports)
            nodes += [*self._mesh(nodes[-1], exit_router), *ports, entry_router]
        ingress = self._stem(target)[::-1]
        return [*nodes, *self._mesh(nodes[-1], ingress[0]), *ingress[1:]]

    def _sides(self, source: int, target: int) -> str:
        """The sides by which a packet leaves cubes: columns first, then rows."""
        across = target % self.columns - source % self.columns
        along = target // self.columns - source // self.columns
        return ("E" if across > 0 else "W") * abs(across) + ("S" if along > 0 else "N") * abs(along)

    def _mesh(self, source: Node, target: Node) -> Iterator[Node]:
        """The routers after `source`: of the nearer neighbours the first one in `STEPS`."""
        goal = target[2:]
        hops, reached = {goal: 0}, [goal]
        for place in reached:
            for each in self._neighbours(place):
                if each not in hops:
                    hops[each] = hops[place] + 1
                    reached.append(each)
        place = source[2:]
        while place != goal:
            place = next(each for each in self._neighbours(place) if hops[each] < hops[place])
            yield ("router", source[1], *place)

    def _neighbours(self, place: Node) -> list[Node]:
        near = [(place[0] + down, place[1] + right) for down, right in STEPS]
        return [each for each in near if each in self.routers]

    def _stem(self, node: Node) -> list[Node]:
        """From a component to the router to which it is attached."""
        between: list[Node] = [("xbar", *node[1:])] if node[0] == "hbm" else []
        return [node, *between, self._router(node)]

    def _position(self, node: Node) -> tuple[Fraction, Fraction]:
        cube = self.keys["cube"]
        match node[0]:
            case "ucie":
                x, y = cube["ucie_pos_mm"][node[2]]
            case "sram":
                x, y = cube["sram"]["pos_mm"]
            case _:
                x, y = self.pes[node[2]]
        return exact(x), exact(y)

    def _router(self, node: Node) -> Node:
        """The nearest router; at a tie that of the lowest row, then column."""
        return ("router", node[1], *min(self.routers, key=lambda each: (self._mm(node, each), each)))

    def _mm(self, node: Node, router: Node) -> Fraction:
        ends = zip(self._position(node), self.routers[router[0], router[1]], strict=True)
        return sum((abs(a - b) for a, b in ends), Fraction())

    def _delay_ps(self, source: Node, target: Node) -> int:
        """A wire, and the overhead of the node to which it leads."""
        kinds = {source[0], target[0]}
        if "xbar" in kinds:
            mm = Fraction()
        elif kinds == {"ucie"}:
            mm = exact(self.keys["sip"]["cube_gap_mm"])
        elif kinds == {"router"}:
            mm = self.pitch[0] if source[2] == target[2] else self.pitch[1]
        else:
            node, router = (target, source) if source[0] == "router" else (source, target)
            mm = self._mm(node, router[2:])
        return round(mm * exact(self.keys["ns_per_mm"]) * 1000) + self.overheads_ps[target[0]]

    def _gbs(self, source: Node, target: Node) -> float | None:
        keys, kinds = self.keys, {source[0], target[0]}
        if "xbar" in kinds:
            return keys["xbar"]["to_hbm_bw_gbs"]
        if "pe" in kinds:
            return keys["pe"]["to_router_bw_gbs"]
        if "sram" in kinds:
            return keys["cube"]["sram_to_router_bw_gbs"]
        if kinds == {"router"}:
            return keys["cube"]["noc"]["link_bw_gbs"]
        return keys["ucie"]["bw_gbs"] if kinds == {"ucie"} else None
