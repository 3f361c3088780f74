"""Shortest paths between SIPs on a ring, or on a grid with or without wrap-around links.

Dimension order: columns before rows; around a ring the shorter direction, upwards where both are
equally long.
"""

from itertools import permutations
from math import isqrt

from kernbench.oracle.theory.topology_file import TopologyFile

SipLink = tuple[int, int]
"""A link between two SIPs in one direction: from, to."""


class SipGrid:
    """`columns` x `rows` SIPs, numbered row by row."""

    def __init__(self, columns: int, rows: int = 1, *, wraps: bool = True) -> None:
        self.columns, self.rows, self.wraps = columns, rows, wraps
        self.sips = columns * rows

    @classmethod
    def of(cls, file: TopologyFile) -> "SipGrid":
        """The SIPs of a topology file: a ring, or a grid of given size or of equal sides."""
        sips = file["system.sips"]
        if sips["topology"] == "ring_1d":
            return cls(sips["count"])
        columns, rows = sips.get("w"), sips.get("h")
        if columns is None or rows is None:
            columns = rows = isqrt(sips["count"])
        return cls(columns, rows, wraps=sips["topology"] != "mesh_2d_no_wrap")

    @property
    def links(self) -> list[SipLink]:
        """The links between neighbours, both directions."""
        return [pair for pair in self._pairs() if self.distance(*pair) == 1]

    @property
    def diameter(self) -> int:
        """The largest distance."""
        return max((self.distance(*pair) for pair in self._pairs()), default=0)

    @property
    def most_neighbours(self) -> int:
        """Number of links out of the SIP that has most of them."""
        sources = [source for source, _ in self.links]
        return max(map(sources.count, sources), default=0)

    def distance(self, source: int, target: int) -> int:
        """Number of links on the path."""
        row, column = divmod(source, self.columns)
        to_row, to_column = divmod(target, self.columns)
        across = self._steps(column, to_column, self.columns)
        # The start is no step in either dimension.
        return len(across) + len(self._steps(row, to_row, self.rows)) - 2

    def path(self, source: int, target: int) -> list[int]:
        """The SIPs on the path, both ends included."""
        row, column = divmod(source, self.columns)
        to_row, to_column = divmod(target, self.columns)
        # Dimension-order routing. W. Dally, B. Towles, Principles and Practices of Interconnection
        # Networks, 2004, chapter 8.
        columns = self._walk(column, to_column, self.columns)
        rows = self._walk(row, to_row, self.rows)
        across = [row * self.columns + each for each in columns]
        return across + [each * self.columns + to_column for each in rows[1:]]

    def _pairs(self) -> list[SipLink]:
        return list(permutations(range(self.sips), 2))

    def _walk(self, start: int, end: int, size: int) -> list[int]:
        """The coordinates from `start` to `end` in one dimension."""
        return [(start + step) % size for step in self._steps(start, end, size)]

    def _steps(self, start: int, end: int, size: int) -> range:
        """The distances from `start` to each coordinate on the way to `end`, downwards negative."""
        up = (end - start) % size if self.wraps else end - start
        # 2 up == size: both directions are equally long, and the rule is upwards.
        if self.wraps and 2 * up > size:
            up -= size
        return range(up + 1) if up >= 0 else range(0, up - 1, -1)


def grid_of(sips: int) -> tuple[int, int]:
    """Columns and rows of the most square grid of `sips` SIPs that is at least as wide as high."""
    height = next(rows for rows in range(isqrt(sips), 0, -1) if sips % rows == 0)
    return sips // height, height
