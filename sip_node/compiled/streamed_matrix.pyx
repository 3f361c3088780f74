"""Matrices in memory, tile by tile, in C; see `Streamed` in `sip_node.chip.pe.operand_tiles`.

A matrix whose bytes are one physical block is translated once: each of its tiles is at an offset
from its first element, and is made when it is needed.
"""

from runtime.core.errors import PageFaultError
from runtime.core.trace import Operand


cdef class TileForm:
    """Made by the matrix."""


cdef class StreamedTile:
    """The twin of `ReferenceStreamedTile`."""

    @property
    def shape(self):
        """Rows and columns."""
        return self.form.shape

    @property
    def dtype(self):
        """The type of the elements."""
        return self.form.dtype

    @property
    def nbytes(self):
        """Bytes of all elements."""
        return self.form.nbytes

    @property
    def pieces(self):
        """Its physical blocks in the order of its elements."""
        return list(self.inputs) if self.physical is None else self.physical


cdef class StreamedMatrix:
    """The twin of `ReferenceStreamed`."""

    def __init__(self, ref, tile, blocks, layout_of):
        self.layout_of, self.dtype, self.blocked = layout_of, ref.dtype, ref.blocked
        self.rows, self.columns = ref.shape
        self.height, self.width = tile
        self.row_stride, self.column_stride = ref.strides
        self.item, self.forms = self.dtype.itemsize, [None] * 4
        self.find_base(ref, blocks)
        if self.base < 0:
            self.translate(ref, blocks)

    def at(self, rows, columns):
        """One tile."""
        return self.tile_at(rows, columns)

    def blocks(self):
        """See `ReferenceStreamed.blocks`; one that has all of them where there is one."""
        cdef long long elements = self.rows * self.columns
        if self.tiles is not None:
            return [piece for tile in self.tiles.values() for piece in tile.pieces]
        if not self.blocked:
            elements = (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride
            elements += 1
        return [Operand(self.base, (elements,), self.dtype.name)]

    cdef StreamedTile tile_at(self, rows, columns):
        """`at` for C classes."""
        cdef StreamedTile tile
        cdef TileForm form
        cdef long long row = rows[0], column = columns[0]
        if self.tiles is not None:
            return <StreamedTile> self.tiles[row, column]
        form = self.form(row, column)
        tile = StreamedTile.__new__(StreamedTile)
        tile.form, tile.matrix, tile.rows = form, self, form.rows
        tile.address = self.base + self.offset(row, column) * self.item
        tile.inputs = (Operand(tile.address, form.shape, form.element, form.gaps),)
        tile.is_located, tile.sip, tile.node = self.is_located, self.sip, self.node
        return tile

    cdef int find_base(self, ref, blocks) except -1:
        """Translate the bytes from the first to the last element; -1 if they are several blocks."""
        cdef long long elements = self.rows * self.columns
        self.base = -1
        if not self.blocked:
            if self.row_stride < 0 or self.column_stride < 0:
                return 0
            elements = (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride
            elements += 1
        try:
            found = blocks(ref.pointer, (elements,), (1,))
        except PageFaultError:
            # Bytes between the rows need not be mapped.
            return 0
        if len(found) == 1:
            self.base = found[0].address
        return 0

    cdef int translate(self, ref, blocks) except -1:
        """Translate tile by tile."""
        cdef StreamedTile tile
        cdef long long row, column
        self.tiles = {}
        for row in range(0, self.rows, self.height):
            for column in range(0, self.columns, self.width):
                tile = StreamedTile.__new__(StreamedTile)
                tile.form = self.form(row, column)
                strides = (tile.form.shape[1], 1) if self.blocked else ref.strides
                tile.physical = blocks(
                    ref.pointer + self.offset(row, column), tile.form.shape, strides
                )
                if len(tile.physical) == 1:
                    [piece] = tile.physical
                    tile.inputs, tile.address = (piece,), piece.address
                    _, tile.rows = self.layout_of(piece)
                self.tiles[row, column] = tile
        return 0

    cdef long long offset(self, long long row, long long column) noexcept:
        """The offset of a tile, in elements; see `blocked_offset`."""
        if self.blocked:
            return row * self.columns + column * min(self.height, self.rows - row)
        return row * self.row_stride + column * self.column_stride

    cdef TileForm form(self, long long row, long long column):
        cdef long long height = min(self.height, self.rows - row)
        cdef long long width = min(self.width, self.columns - column)
        cdef int index = 2 * (height < self.height) + (width < self.width)
        cdef TileForm form
        found = self.forms[index]
        if found is not None:
            return <TileForm> found
        form = self.forms[index] = TileForm.__new__(TileForm)
        form.shape, form.dtype, form.element = (height, width), self.dtype, self.dtype.name
        form.nbytes, form.gaps = height * width * self.item, ()
        # The op log writes row-major strides as (), and those of a tile that has no gaps.
        strides = (self.row_stride, self.column_stride)
        if not self.blocked and strides != (width, 1):
            _, form.rows = self.layout_of(Operand(0, form.shape, form.element, strides))
            if form.rows is not None:
                form.gaps = strides
        return form
