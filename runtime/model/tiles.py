"""Cuts a matrix product into the tiles of the GEMM engine."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

Span = tuple[int, int]


class TileSize(NamedTuple):
    """Rows, depth and columns of a full tile: (m, k) times (k, n)."""

    m: int
    k: int
    n: int


class Tile(NamedTuple):
    """One step of the GEMM engine: (start, stop) along each axis.

    `first` and `last` mark the first and the last step of an output tile.
    """

    rows: Span
    depth: Span
    columns: Span
    first: bool
    last: bool

    @property
    def size(self) -> TileSize:
        """Rows, depth and columns; less than a full tile at the ends of the matrices."""
        (top, bottom), (front, back), (left, right) = self.rows, self.depth, self.columns
        return TileSize(bottom - top, back - front, right - left)


@dataclass(frozen=True)
class TilePlan:
    """The tiles of (m, k) times (k, n), exact at the ends, in row-major order, depth innermost."""

    m: int
    k: int
    n: int
    tile: TileSize

    @cached_property
    def output_tiles(self) -> int:
        """Tiles of the result."""
        # -(-a // b) is the ceiling of a / b in integers.
        return -(-self.m // self.tile.m) * -(-self.n // self.tile.n)

    @cached_property
    def tiles(self) -> int:
        """Steps of the GEMM engine."""
        return self.output_tiles * -(-self.k // self.tile.k)

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations of the product."""
        return self.m * self.k * self.n

    @property
    def padding_utilisation(self) -> float:
        """The operations of the product as a share of those of full tiles.

        The engine takes as long for a partial tile as for a full one.
        """
        return self.macs / (self.tiles * self.tile.m * self.tile.k * self.tile.n)

    def kinds(self) -> list[tuple[Tile, int]]:
        """A tile of each size, first the inner ones and then the last ones of an output tile, with
        the number of tiles like it.
        """
        return _kinds(self)

    @cached_property
    def spans(self) -> tuple[list[Span], list[Span], list[Span]]:
        """The tiles along each axis: rows, depth, columns."""
        axes = zip((self.m, self.k, self.n), self.tile, strict=True)
        rows, depths, columns = (_spans(length, step) for length, step in axes)
        return rows, depths, columns

    def __iter__(self) -> Iterator[Tile]:
        all_rows, depths, all_columns = self.spans
        for rows in all_rows:
            for columns in all_columns:
                # Depth innermost: the steps of an output tile are consecutive, so one accumulator
                # is enough for it.
                for depth in depths:
                    yield Tile(rows, depth, columns, depth is depths[0], depth is depths[-1])


def blocked_offset(shape: tuple[int, int], block: tuple[int, int], row: int, column: int) -> int:
    """The offset, in elements, of the block that starts at (row, column) of a blocked matrix.

    Such a matrix is stored block after block in row-major order; blocks at the ends are partial.
    """
    rows, columns = shape
    # All block rows above are full rows of the matrix; blocks to the left have the height of this
    # block row.
    return row * columns + column * min(block[0], rows - row)


@cache
def _kinds(plan: TilePlan) -> list[tuple[Tile, int]]:
    # The PEs of a launch have products of the same sizes.
    rows, columns = _lengths(_spans(plan.m, plan.tile.m)), _lengths(_spans(plan.n, plan.tile.n))
    *inner, last = _spans(plan.k, plan.tile.k)
    depths = [(span, count, False) for span, count in _lengths(inner)] + [(last, 1, True)]
    return [
        (Tile(row, depth, column, depth[0] == 0, is_last), row_count * count * column_count)
        for depth, count, is_last in depths
        for row, row_count in rows
        for column, column_count in columns
    ]


def _lengths(spans: list[Span]) -> list[tuple[Span, int]]:
    """The first span of each length, and the number of those."""
    counts = Counter(stop - start for start, stop in spans)
    first = {stop - start: (start, stop) for start, stop in reversed(spans)}
    return [(first[length], count) for length, count in counts.items()]


@cache
def _spans(length: int, step: int) -> list[Span]:
    return [(start, min(start + step, length)) for start in range(0, length, step)]
