"""The matrices in memory of the mock runtime, as blocks of an array."""

from collections.abc import Callable, Iterator

from runtime.language.value import Array, Pointer, Ref, Shape
from runtime.model.tiles import blocked_offset


def pieces(
    ref: Ref, tile: tuple[int, int], block_at: Callable[[Pointer, Shape, tuple[int, ...]], Array]
) -> Iterator[tuple[slice, slice, Array]]:
    """The contiguous blocks of a matrix in memory, with their rows and columns."""
    # A row-major matrix is one piece with strides, a blocked one a piece per tile.
    height, width = tile if ref.blocked else ref.shape
    for row in range(0, ref.shape[0], height):
        for column in range(0, ref.shape[1], width):
            rows, columns = min(height, ref.shape[0] - row), min(width, ref.shape[1] - column)
            first = ref.pointer + blocked_offset(ref.shape, (height, width), row, column)
            strides = (columns, 1) if ref.blocked else ref.strides
            block = block_at(first, (rows, columns), strides)
            yield slice(row, row + rows), slice(column, column + columns), block
