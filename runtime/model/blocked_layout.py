"""The order of a matrix's elements in memory if the matrix is stored tile after tile."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from runtime.model.tile_placement import TileOrder, check_tiles

Indices = np.ndarray[Any, np.dtype[np.int64]]
Elements = np.ndarray[Any, np.dtype[Any]]
_Part = tuple[Elements, Elements]


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

    def packed(self, matrix: Elements) -> Elements:
        """The elements of a matrix, in their order in memory.

        `ValueError` for another number of axes than two.
        """
        self.check(matrix.shape)
        elements = np.empty(matrix.size, matrix.dtype)
        for part, of_memory in self._parts(matrix, elements):
            of_memory[...] = part
        return elements

    def unpacked(self, elements: Elements, shape: tuple[int, ...]) -> Elements:
        """The matrix of `shape` whose elements in memory these are: the inverse of `packed`."""
        self.check(shape)
        matrix = np.empty(shape, elements.dtype)
        for part, of_memory in self._parts(matrix, elements):
            part[...] = of_memory
        return matrix

    def positions(self, shape: tuple[int, ...]) -> Indices:
        """The position in memory, in elements, of each element of a matrix of `shape`.

        `ValueError` for another number of axes than two.
        """
        return self.unpacked(np.arange(prod(shape)), shape)

    @staticmethod
    def check(shape: tuple[int, ...]) -> None:
        """`ValueError` for another number of axes than two."""
        if len(shape) != 2:
            raise ValueError(
                f"a blocked layout is of matrices, with 2 axes; shape {shape} has {len(shape)}"
            )

    def _parts(self, matrix: Elements, elements: Elements) -> Iterator[_Part]:
        """Parts of a matrix and of its elements in memory, as views of one shape.

        Not tile by tile: tiles may have a single element.
        """
        by_rows = self.order == "row_major"
        return self._by_rows(matrix, elements) if by_rows else self._by_columns(matrix, elements)

    def _by_rows(self, matrix: Elements, elements: Elements) -> Iterator[_Part]:
        rows, columns = matrix.shape
        tiles, rest = divmod(columns, self.columns)
        for top in range(0, rows, self.rows):
            band, start = matrix[top : top + self.rows], top * columns
            height, end = len(band), start + len(band) * columns
            middle = end - height * rest
            yield (
                band[:, : columns - rest].reshape(height, tiles, self.columns).swapaxes(0, 1),
                elements[start:middle].reshape(tiles, height, self.columns),
            )
            yield band[:, columns - rest :], elements[middle:end].reshape(height, rest)

    def _by_columns(self, matrix: Elements, elements: Elements) -> Iterator[_Part]:
        # The tiles of a column lie one below the other: together they are row-major.
        rows, columns = matrix.shape
        for left in range(0, columns, self.columns):
            part = matrix[:, left : left + self.columns]
            yield part, elements[left * rows : left * rows + part.size].reshape(part.shape)


def blocked_row_major(rows: int, columns: int) -> BlockedLayout:
    """Tiles in row-major order, for `layout=`: what `tl.ref(..., blocked=True)` streams."""
    return BlockedLayout(rows, columns, "row_major")


def blocked_column_major(rows: int, columns: int) -> BlockedLayout:
    """Tiles in column-major order, for `layout=`."""
    return BlockedLayout(rows, columns, "column_major")
