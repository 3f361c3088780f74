"""The order of a matrix's elements in memory if the matrix is stored tile after tile."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
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

    def elements(self, shape: tuple[int, ...]) -> Indices:
        """The elements of a matrix of `shape`, by row-major number, in their order in memory.

        `ValueError` for another number of axes than two.
        """
        if len(shape) != 2:
            raise ValueError(
                f"a blocked layout is of matrices, with 2 axes; shape {shape} has {len(shape)}"
            )
        numbers = np.arange(prod(shape)).reshape(shape)
        # Not tile by tile: tiles may have a single element.
        by_rows = self.order == "row_major"
        pieces = self._by_rows(numbers) if by_rows else self._by_columns(numbers)
        # A matrix without elements has no pieces.
        return np.concatenate([numbers[:0].reshape(-1), *pieces])

    def positions(self, shape: tuple[int, ...]) -> Indices:
        """The position in memory, in elements, of each element of a matrix of `shape`.

        `ValueError` for another number of axes than two.
        """
        elements = self.elements(shape)
        positions = np.empty_like(elements)
        positions[elements] = np.arange(elements.size)
        return positions.reshape(shape)

    def _by_rows(self, numbers: Indices) -> Iterator[Indices]:
        rows, columns = numbers.shape
        whole = columns // self.columns * self.columns
        for top in range(0, rows, self.rows):
            band = numbers[top : top + self.rows]
            tiles = band[:, :whole].reshape(len(band), -1, self.columns)
            yield tiles.swapaxes(0, 1).reshape(-1)
            yield band[:, whole:].reshape(-1)

    def _by_columns(self, numbers: Indices) -> Iterator[Indices]:
        # The tiles of a column lie one below the other: together they are row-major.
        for left in range(0, numbers.shape[1], self.columns):
            yield numbers[:, left : left + self.columns].reshape(-1)


def blocked_row_major(rows: int, columns: int) -> BlockedLayout:
    """Tiles in row-major order, for `layout=`: what `tl.ref(..., blocked=True)` streams."""
    return BlockedLayout(rows, columns, "row_major")


def blocked_column_major(rows: int, columns: int) -> BlockedLayout:
    """Tiles in column-major order, for `layout=`."""
    return BlockedLayout(rows, columns, "column_major")
