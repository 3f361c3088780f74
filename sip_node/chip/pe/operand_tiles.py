"""The operands of a matrix product, tile by tile: staged in TCM, or streamed from memory.

A staged tile is fetched to registers from where it lies in the value. A streamed tile is copied to
a buffer in TCM first, by as many DMA requests as it has physical blocks.
"""

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np
from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.dtypes import DType
from runtime.core.trace import Operand
from runtime.language.value import Array, Pointer, Ref, Value, row_major
from runtime.model.tiles import Span, blocked_offset
from sip_node.chip.strided_block import layout_of

Blocks = Callable[[Pointer, tuple[int, ...], tuple[int, ...]], list[Operand]]
"""(pointer, shape, strides) of virtual memory -> physical blocks, in the order of the elements."""


class ReferenceTileData(Struct, frozen=True, gc=False):
    """A block in TCM and its elements; `data` is None in a run without data."""

    block: Operand
    nbytes: int
    data: Array | None
    checksum: int


class ReferenceStreamedTile(NamedTuple):
    """A tile in memory; `pieces` are its physical blocks in the order of its elements."""

    shape: tuple[int, int]
    dtype: DType
    nbytes: int
    pieces: list[Operand]


if TYPE_CHECKING or not IS_COMPILED:
    TileData = ReferenceTileData
    StreamedTile = ReferenceStreamedTile
else:
    from sip_node.compiled.streamed_matrix import StreamedTile  # noqa: F401 - a name of this module
    from sip_node.compiled.tile_data import TileData

NOT_LOADED = TileData(Operand(0, (0,), ""), 0, None, 0)
"""An operand that is not in TCM yet."""


class ReferenceStaged:
    """A value in TCM. A tile is cut once: steps of other rows and columns use it again."""

    def __init__(self, value: Value) -> None:
        self._value = value
        self._tiles: dict[tuple[Span, Span], ReferenceTileData] = {}

    def at(self, rows: Span, columns: Span) -> ReferenceTileData:
        """One tile."""
        tile = self._tiles.get((rows, columns))
        if tile is None:
            tile = self._tiles[rows, columns] = self._cut(rows, columns)
        return tile

    def _cut(self, rows: Span, columns: Span) -> ReferenceTileData:
        part = self._value[slice(*rows), slice(*columns)]
        data = None if part.data is None else np.array(part.data, order="C")
        return ReferenceTileData(_block(part), part.nbytes, data, checksum_of(data))


class ReferenceStreamed:
    """A matrix in memory. `tile` is the tile size, in which a blocked matrix is stored as well."""

    def __init__(self, ref: Ref, tile: tuple[int, int], blocks: Blocks) -> None:
        rows, columns = ref.shape
        self._tiles: dict[tuple[int, int], ReferenceStreamedTile] = {}
        for row in range(0, rows, tile[0]):
            for column in range(0, columns, tile[1]):
                shape = (min(tile[0], rows - row), min(tile[1], columns - column))
                # Translated once, with the product: its mapping is that of its submission.
                pieces = blocks(*_tile_of(ref, tile, row, column, shape))
                nbytes = prod(shape) * ref.dtype.itemsize
                self._tiles[row, column] = ReferenceStreamedTile(shape, ref.dtype, nbytes, pieces)

    def at(self, rows: Span, columns: Span) -> ReferenceStreamedTile:
        """One tile."""
        return self._tiles[rows[0], columns[0]]

    def blocks(self) -> list[Operand]:
        """The physical blocks of all tiles."""
        return [piece for tile in self._tiles.values() for piece in tile.pieces]


if TYPE_CHECKING or not IS_COMPILED:
    Staged = ReferenceStaged
    Streamed = ReferenceStreamed
else:
    from sip_node.compiled.staged_matrix import StagedMatrix as Staged
    from sip_node.compiled.streamed_matrix import StreamedMatrix

    class Streamed(StreamedMatrix):
        """The matrix in C; see `ReferenceStreamed`."""

        def __init__(self, ref: Ref, tile: tuple[int, int], blocks: Blocks) -> None:
            super().__init__(ref, tile, blocks, layout_of)


Source = Staged | Streamed


def checksum_of(data: Array | None) -> int:
    """The CRC-32 of the elements in row-major order, 0 without data."""
    if data is None:
        return 0
    # Types that numpy does not have, such as bfloat16, have no buffer.
    plain = data.dtype.isbuiltin == 1 and data.flags.c_contiguous
    return crc32(data.data if plain else data.tobytes())


def _block(value: Value) -> Operand:
    """The block of a value in the form of the op log."""
    packed = row_major(value.shape)
    # An axis of length 1 has no stride that matters: normalise it, so that equal blocks are equal.
    needed = zip(value.shape, value.strides, packed, strict=True)
    strides = tuple(natural if length == 1 else stride for length, stride, natural in needed)
    return Operand(
        value.address, value.shape, value.dtype.name, () if strides == packed else strides
    )


def _tile_of(
    ref: Ref, tile: tuple[int, int], row: int, column: int, shape: tuple[int, int]
) -> tuple[Pointer, tuple[int, int], tuple[int, ...]]:
    """Pointer, shape and strides of the tile at (row, column)."""
    if ref.blocked:
        return ref.pointer + blocked_offset(ref.shape, tile, row, column), shape, row_major(shape)
    return ref.pointer + row * ref.strides[0] + column * ref.strides[1], shape, ref.strides
