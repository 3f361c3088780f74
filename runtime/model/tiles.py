"""How a matrix product is cut into the tiles of the GEMM engine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

Span = tuple[int, int]


class TileSize(NamedTuple):
    """StridedBlock, depth and columns of a full tile: (m, k) times (k, n)."""

    m: int
    k: int
    n: int


class Tile(NamedTuple):
    """One step of the GEMM engine: (start, stop) along each axis; `first` and `last` of the steps of one output tile."""

    rows: Span
    depth: Span
    columns: Span
    first: bool
    last: bool

    @property
    def size(self) -> TileSize:
        """StridedBlock, depth and columns; less than a full tile at the ends of the matrices."""
        return TileSize(*(stop - start for start, stop in (self.rows, self.depth, self.columns)))


@dataclass(frozen=True)
class TilePlan:
    """The tiles of (m, k) times (k, n), exact at the ends: row of tiles by row of tiles, depth innermost."""

    m: int
    k: int
    n: int
    tile: TileSize

    @property
    def output_tiles(self) -> int:
        """Tiles of the result."""
        return -(-self.m // self.tile.m) * -(-self.n // self.tile.n)

    @property
    def tiles(self) -> int:
        """Steps of the GEMM engine."""
        return self.output_tiles * -(-self.k // self.tile.k)

    @property
    def macs(self) -> int:
        """Multiplications that the result needs."""
        return self.m * self.k * self.n

    @property
    def padding_utilisation(self) -> float:
        """Needed multiplications as a share of those of full tiles: the engine takes as long for a tile that is not full."""
        return self.macs / (self.tiles * self.tile.m * self.tile.k * self.tile.n)

    def __iter__(self) -> Iterator[Tile]:
        depths = _spans(self.k, self.tile.k)
        for rows in _spans(self.m, self.tile.m):
            for columns in _spans(self.n, self.tile.n):
                for depth in depths:
                    yield Tile(rows, depth, columns, depth is depths[0], depth is depths[-1])


def blocked_offset(shape: tuple[int, int], block: tuple[int, int], row: int, column: int) -> int:
    """Where, in elements, the block that starts at (row, column) begins in a blocked matrix of `shape`.

    Such a matrix is stored block after block, row by row of blocks, those at the ends as small as what is left.
    """
    rows, columns = shape
    return row * columns + column * min(block[0], rows - row)


def _spans(length: int, step: int) -> list[Span]:
    return [(start, min(start + step, length)) for start in range(0, length, step)]
