"""The router grid of a cube: a router at the centre of each cell, except below the HBM stack.

Positions are exact fractions of a millimetre. With binary floats, routers at equal distance from a
component would differ in the last bit, and the choice of the nearest would depend on rounding.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

from runtime.core.simtime import exact
from runtime.model.schema.cube_schema import CubeNoc, SizeMm
from runtime.model.schema.quantities import Point


@dataclass(frozen=True)
class GridRouter:
    """A router: its grid coordinates, its distance from the north-west corner of the cube."""

    row: int
    col: int
    x_mm: Fraction
    y_mm: Fraction


class RouterGrid:
    """The routers of a cube in row-major order; a router is named by its position in `routers`."""

    def __init__(self, size: SizeMm, noc: CubeNoc) -> None:
        # A router is at the centre of its cell, so the pitch is the size of a cell.
        self.pitch_x_mm = exact(size.w) / noc.cols
        self.pitch_y_mm = exact(size.h) / noc.rows
        x0, y0, x1, y1 = map(exact, noc.hbm_hole_mm)
        columns = [(col + Fraction(1, 2)) * self.pitch_x_mm for col in range(noc.cols)]
        rows = [(row + Fraction(1, 2)) * self.pitch_y_mm for row in range(noc.rows)]
        # Strict comparison: a router on the edge of the footprint stays.
        below_x = [x0 < x_mm < x1 for x_mm in columns]
        below_y = [y0 < y_mm < y1 for y_mm in rows]
        self.routers = tuple(
            GridRouter(row, col, x_mm, y_mm)
            for row, y_mm in enumerate(rows)
            for col, x_mm in enumerate(columns)
            if not (below_x[col] and below_y[row])
        )
        self._index = {(router.row, router.col): index for index, router in enumerate(self.routers)}
        # A millimetre has this many units, of which all positions of routers are multiples.
        self._units = lcm(*(place.denominator for place in (*columns, *rows)))
        self._places = [
            (int(router.x_mm * self._units), int(router.y_mm * self._units))
            for router in self.routers
        ]

    def nearest(self, position: Point) -> tuple[int, Fraction]:
        """The nearest router and its Manhattan distance in mm; at a tie the lowest (row, col)."""
        x_mm, y_mm = map(exact, position)
        # In integers, since fractions are slow to add and to compare.
        units = lcm(self._units, x_mm.denominator, y_mm.denominator)
        scale, x, y = units // self._units, int(x_mm * units), int(y_mm * units)
        distances = [
            abs(router_x * scale - x) + abs(router_y * scale - y)
            for router_x, router_y in self._places
        ]
        # `min` returns the first of equal distances, which has the lowest (row, column).
        index = min(range(len(distances)), key=distances.__getitem__)
        return index, Fraction(distances[index], units)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The neighbours of each router in the order W, E, N, S: column moves before row moves."""
        return tuple(tuple(self._neighbours_of(router)) for router in self.routers)

    def _neighbours_of(self, router: GridRouter) -> Iterator[int]:
        row, col = router.row, router.col
        # A cell below the HBM stack has no router, and neither has one outside the grid.
        for cell in ((row, col - 1), (row, col + 1), (row - 1, col), (row + 1, col)):
            if cell in self._index:
                yield self._index[cell]

    def link_mm(self, a: int, b: int) -> Fraction:
        """Length of the wire between the neighbouring routers `a` and `b`."""
        return self.pitch_x_mm if self.routers[a].row == self.routers[b].row else self.pitch_y_mm

    def hops_to(
        self, target: int, down: frozenset[tuple[int, int]] = frozenset()
    ) -> dict[int, int]:
        """The length in hops of a shortest path to `target`, from every router that reaches it.

        `down` are links that no path takes.
        """
        hops = {target: 0}
        frontier = deque([target])
        while frontier:
            router = frontier.popleft()
            for neighbour in self.neighbours[router]:
                # Breadth-first search: the first visit of a router is by a shortest path.
                if neighbour not in hops and (neighbour, router) not in down:
                    hops[neighbour] = hops[router] + 1
                    frontier.append(neighbour)
        return hops

    @property
    def connected(self) -> bool:
        """Whether the grid has a router and every router reaches every other."""
        return bool(self.routers) and len(self.hops_to(0)) == len(self.routers)
