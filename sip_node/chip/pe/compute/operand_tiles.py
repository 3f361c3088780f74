"""The operands of a matrix product, tile by tile: staged in TCM, or streamed from memory.

A staged tile is fetched to registers from where it lies in the value. A streamed tile is copied to
a buffer in TCM first, by as many DMA requests as it has physical blocks.
"""

from collections.abc import Callable
from zlib import crc32

import sip_node.kernel.tile_data as tiles
from runtime.core.dtypes import DType
from runtime.core.errors import PageFaultError
from runtime.core.trace import Operand
from runtime.language.value import Array, Pointer, Ref, Value
from runtime.model.tiles import Span, blocked_offset
from sip_node.chip.mapping.strided_block import StridedBlock, layout_of
from sip_node.kernel.tile_data import TileData

Blocks = Callable[[Pointer, tuple[int, ...], tuple[int, ...]], list[Operand]]
"""(pointer, shape, strides) of virtual memory -> physical blocks, in the order of the elements."""


class Staged:
    """A value in TCM. A tile is cut once: steps of other rows and columns use it again."""

    def __init__(self, value: Value) -> None:
        self._value = value
        self._tiles: dict[tuple[Span, Span], TileData] = {}

    def at(self, rows: Span, columns: Span) -> TileData:
        """The tile of these rows and columns."""
        tile = self._tiles.get((rows, columns))
        if tile is None:
            tile = self._tiles[rows, columns] = self._cut(rows, columns)
        return tile

    def _cut(self, rows: Span, columns: Span) -> TileData:
        value, row, column = self._value, rows[0], columns[0]
        height, width, item = rows[1] - row, columns[1] - column, value.dtype.itemsize
        row_stride, column_stride = value.strides
        address = value.address + (row * row_stride + column * column_stride) * item
        # An axis of length 1 has no stride that matters: normalise it, so that equal blocks are
        # equal.
        strides = (width if height == 1 else row_stride, 1 if width == 1 else column_stride)
        block = Operand(
            address, (height, width), value.dtype.name, () if strides == (width, 1) else strides
        )
        return tiles.cut_tile(block, value.dtype, height * width * item, value.data, row, column)


class TileForm:
    """The form of the tiles of one size of a matrix in memory.

    `gaps` and `rows` are the strides and the layout of tiles with gaps, else () and None. `targets`
    are the blocks of the buffers that they are loaded to, None before the first one.
    """

    def __init__(self, shape: tuple[int, int], dtype: DType) -> None:
        self.shape, self.dtype, self.element = shape, dtype, dtype.name
        self.nbytes = shape[0] * shape[1] * dtype.itemsize
        self.gaps: tuple[int, ...] = ()
        self.rows: StridedBlock | None = None
        self.targets: list[tuple[Operand] | None] | None = None


class StreamedTile:
    """A tile in memory; `pieces` are its physical blocks in the order of its elements.

    That of a tile of one piece is `inputs`, at `address` in the memory at (`sip`, `node`), -1 where
    it has not been located, with the layout `rows`. `matrix` is the matrix if all of it is one
    block.
    """

    def __init__(
        self,
        form: TileForm,
        pieces: list[Operand],
        rows: StridedBlock | None,
        matrix: "Streamed | None",
    ) -> None:
        self.form, self.pieces, self.rows, self.matrix = form, pieces, rows, matrix
        self.inputs = (pieces[0],) if len(pieces) == 1 else None
        self.address = pieces[0].address
        self.sip = self.node = -1


class Streamed:
    """A matrix in memory. `tile` is the tile size, in which a blocked matrix is stored as well.

    It is translated with the product: its mapping is that of its submission. A matrix whose bytes
    are one physical block is translated once, and its tiles are made when they are needed: each is
    at an offset from its first element. Its memory is (`sip`, `node`), -1 until it is located.
    """

    def __init__(self, ref: Ref, tile: tuple[int, int], blocks: Blocks) -> None:
        self._pointer, self._dtype, self._is_blocked = ref.pointer, ref.dtype, ref.blocked
        self._item = self._dtype.itemsize
        self._tile, self._shape, self._strides = tile, ref.shape, ref.strides
        self._height, self._width = tile
        self._rows, self._columns = self._shape
        self._row_stride, self._column_stride = self._strides
        # By whether a tile is less high, and less wide, than a full one.
        self._forms: list[TileForm | None] = [None] * 4
        self.sip = self.node = -1
        self._elements = self._rows * self._columns
        if not self._is_blocked:
            # From the first to the last one.
            self._elements = self._offset(self._rows - 1, self._columns - 1) + 1
        self._base = -1
        if self._is_blocked or (self._row_stride >= 0 and self._column_stride >= 0):
            self._base = self._whole(blocks)
        self._tiles: dict[tuple[int, int], StreamedTile] = {}
        if self._base < 0:
            for row in range(0, self._rows, self._height):
                for column in range(0, self._columns, self._width):
                    self._tiles[row, column] = self._translated(row, column, blocks)

    def at(self, rows: Span, columns: Span) -> StreamedTile:
        """The tile of these rows and columns."""
        row, column = rows[0], columns[0]
        if self._base < 0:
            return self._tiles[row, column]
        form = self._form(row, column)
        address = self._base + self._offset(row, column) * self._item
        block = Operand(address, form.shape, form.element, form.gaps)
        return StreamedTile(form, [block], form.rows, self)

    def blocks(self) -> list[Operand]:
        """The physical blocks of all tiles, or one that has all of them."""
        if self._base < 0:
            return [piece for tile in self._tiles.values() for piece in tile.pieces]
        return [Operand(self._base, (self._elements,), self._dtype.name)]

    def _whole(self, blocks: Blocks) -> int:
        """The address of the first element, -1 if not all up to the last one are one block."""
        try:
            pieces = blocks(self._pointer, (self._elements,), (1,))
        except PageFaultError:
            # Bytes between the rows need not be mapped.
            return -1
        return pieces[0].address if len(pieces) == 1 else -1

    def _translated(self, row: int, column: int, blocks: Blocks) -> StreamedTile:
        form = self._form(row, column)
        strides = (form.shape[1], 1) if self._is_blocked else self._strides
        pieces = blocks(self._pointer + self._offset(row, column), form.shape, strides)
        rows = layout_of(pieces[0]).rows if len(pieces) == 1 else None
        return StreamedTile(form, pieces, rows, None)

    def _offset(self, row: int, column: int) -> int:
        """The offset of a tile, in elements."""
        if self._is_blocked:
            return blocked_offset(self._shape, self._tile, row, column)
        return row * self._row_stride + column * self._column_stride

    def _form(self, row: int, column: int) -> TileForm:
        height = min(self._height, self._rows - row)
        width = min(self._width, self._columns - column)
        index = 2 * (height < self._height) + (width < self._width)
        form = self._forms[index]
        if form is None:
            form = self._forms[index] = TileForm((height, width), self._dtype)
            # The op log writes row-major strides as (), and those of a tile that has no gaps.
            if not self._is_blocked and self._strides != (width, 1):
                form.rows = layout_of(Operand(0, form.shape, form.element, self._strides)).rows
                if form.rows is not None:
                    form.gaps = self._strides
        return form


Source = Staged | Streamed


def checksum_of(data: Array | None) -> int:
    """The CRC-32 of the elements in row-major order, 0 without data."""
    if data is None:
        return 0
    # Types that numpy does not have, such as bfloat16, have no buffer.
    plain = data.dtype.isbuiltin == 1 and data.flags.c_contiguous
    return crc32(data.data if plain else data.tobytes())
