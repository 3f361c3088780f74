"""The order of a matrix's elements in memory if the matrix is stored tile after tile."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime.model.tile_placement import TileOrder, check_tiles

Indices = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class BlockedLayout:
    """A matrix stored as tiles of `rows` x `columns` elements, in row- or column-major order.

    Each tile is row-major without gaps, and tiles at the ends are partial. So a tile is one
    contiguous piece of memory, and the matrix takes no more space than in row-major order.
    """

    rows: int
    columns: int
    order: TileOrder

    def __post_init__(self) -> None:
        check_tiles(self.rows, self.columns, self.order)

    def positions(self, shape: tuple[int, ...]) -> Indices:
        """The position in memory, in elements, of each element of a matrix of `shape`.

        `ValueError` for another number of axes than two.
        """
        if len(shape) != 2:
            raise ValueError(
                f"a blocked layout is of matrices, with 2 axes; shape {shape} has {len(shape)}"
            )
        rows, columns = shape
        row, column = np.arange(rows)[:, None], np.arange(columns)[None, :]
        # First row and column of the tile that contains an element, and the size of that tile.
        top, left = row // self.rows * self.rows, column // self.columns * self.columns
        height, width = np.minimum(self.rows, rows - top), np.minimum(self.columns, columns - left)
        # Elements stored before the tile: the full rows or columns of tiles above or left of it,
        # then the tiles before it in its own row or column of tiles.
        before = (
            top * columns + left * height
            if self.order == "row_major"
            else left * rows + top * width
        )
        # Plus the position inside the tile, which is row-major.
        return before + (row - top) * width + (column - left)


def blocked_row_major(rows: int, columns: int) -> BlockedLayout:
    """Tiles in row-major order, for `layout=`: what `tl.ref(..., blocked=True)` streams."""
    return BlockedLayout(rows, columns, "row_major")


def blocked_column_major(rows: int, columns: int) -> BlockedLayout:
    """Tiles in column-major order, for `layout=`."""
    return BlockedLayout(rows, columns, "column_major")
