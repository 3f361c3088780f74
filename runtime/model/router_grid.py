"""The router grid of a cube: one router at the centre of each cell, none inside the footprint of the HBM stack.

Positions are exact fractions of a millimetre, so that "nearest" has no rounding and its ties are ties.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from runtime.core.simtime import exact
from runtime.model.schema import CubeNoc, Point, SizeMm


@dataclass(frozen=True)
class GridRouter:
    """A router and its place: grid coordinates, and the distance from the north-west corner of the cube."""

    row: int
    col: int
    x_mm: Fraction
    y_mm: Fraction


class RouterGrid:
    """The routers of a cube in row-major order; a router is named by its position in `routers`."""

    def __init__(self, size: SizeMm, noc: CubeNoc) -> None:
        self.pitch_x_mm = exact(size.w) / noc.cols
        self.pitch_y_mm = exact(size.h) / noc.rows
        x0, y0, x1, y1 = map(exact, noc.hbm_hole_mm)
        cells = (self._router(row, col) for row in range(noc.rows) for col in range(noc.cols))
        self.routers = tuple(
            cell for cell in cells if not (x0 < cell.x_mm < x1 and y0 < cell.y_mm < y1)
        )
        self._index = {(router.row, router.col): index for index, router in enumerate(self.routers)}

    def _router(self, row: int, col: int) -> GridRouter:
        return GridRouter(
            row,
            col,
            (col + Fraction(1, 2)) * self.pitch_x_mm,
            (row + Fraction(1, 2)) * self.pitch_y_mm,
        )

    def nearest(self, position: Point) -> tuple[int, Fraction]:
        """The router nearest to `position` and the Manhattan distance in mm; ties go to the lowest (row, column)."""
        x_mm, y_mm = map(exact, position)
        distances = [abs(router.x_mm - x_mm) + abs(router.y_mm - y_mm) for router in self.routers]
        index = min(range(len(distances)), key=distances.__getitem__)
        return index, distances[index]

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The neighbours of each router in the order W, E, N, S: column moves come before row moves."""
        return tuple(tuple(self._around(router)) for router in self.routers)

    def _around(self, router: GridRouter) -> Iterator[int]:
        row, col = router.row, router.col
        for place in ((row, col - 1), (row, col + 1), (row - 1, col), (row + 1, col)):
            if place in self._index:
                yield self._index[place]

    def link_mm(self, a: int, b: int) -> Fraction:
        """Length of the wire between the neighbouring routers `a` and `b`."""
        return self.pitch_x_mm if self.routers[a].row == self.routers[b].row else self.pitch_y_mm

    def hops_to(self, target: int) -> dict[int, int]:
        """Hops of a shortest path from every router that reaches `target`."""
        hops = {target: 0}
        frontier = deque([target])
        while frontier:
            router = frontier.popleft()
            for neighbour in self.neighbours[router]:
                if neighbour not in hops:
                    hops[neighbour] = hops[router] + 1
                    frontier.append(neighbour)
        return hops

    @property
    def connected(self) -> bool:
        """Whether there is a router, and every router reaches every other."""
        return bool(self.routers) and len(self.hops_to(0)) == len(self.routers)
