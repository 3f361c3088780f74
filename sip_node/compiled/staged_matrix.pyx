"""Matrices in TCM, tile by tile, in C; see `Staged` in `sip_node.chip.pe.operand_tiles`.

The elements of a tile are copied row by row, since a step needs them without gaps.
"""

from cpython.buffer cimport PyBUF_STRIDES, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcpy

import numpy as np

from runtime.core.trace import Operand
from sip_node.compiled.checksum cimport crc32_of
from sip_node.compiled.tile_data cimport OTHER, kind_of

cdef object array = np.array


cdef class StagedMatrix:
    """The twin of `ReferenceStaged`."""

    def __init__(self, value not None):
        self.value, self.dtype, self.tiles = value, value.dtype, {}
        self.element, self.item = self.dtype.name, self.dtype.itemsize
        self.kind, self.address = kind_of(self.element), value.address
        self.row_stride, self.column_stride = value.strides

    def at(self, rows, columns):
        """One tile."""
        key = (rows, columns)
        tile = self.tiles.get(key)
        if tile is None:
            tile = self.tiles[key] = self.tile_at(rows, columns)
        return tile

    cdef TileData tile_at(self, rows, columns):
        """Cut a tile."""
        cdef TileData tile
        cdef long long row = rows[0], column = columns[0]
        cdef long long height = rows[1] - row, width = columns[1] - column
        self.find_form(height, width)
        tile = TileData.__new__(TileData)
        tile.block = Operand(
            self.address + (row * self.row_stride + column * self.column_stride) * self.item,
            self.shape, self.element, self.strides,
        )
        tile.shape, tile.element, tile.inputs = self.shape, self.element, (tile.block,)
        tile.nbytes, tile.dtype, tile.kind = height * width * self.item, self.dtype, self.kind
        data = self.value.data
        if data is None:
            return tile
        if self.kind == OTHER:
            # Types that numpy does not have, such as bfloat16, have no buffer.
            tile.array = array(data[row : row + height, column : column + width], order="C")
            tile.content = tile.array.tobytes()
        else:
            tile.content = self.elements_of(data, row, column, height, width)
            tile.elements = PyBytes_AS_STRING(tile.content)
        tile.checksum = crc32_of(PyBytes_AS_STRING(tile.content), tile.nbytes)
        if self.kind == OTHER:
            tile.content = None
        return tile

    cdef int find_form(self, long long height, long long width) except -1:
        """Set the shape and the strides of a tile; most tiles have those of the last one."""
        cdef long long row_stride, column_stride
        if self.shape is not None and self.shape[0] == height and self.shape[1] == width:
            return 0
        # An axis of length 1 has no stride that matters: as in a block without gaps.
        row_stride = width if height == 1 else self.row_stride
        column_stride = 1 if width == 1 else self.column_stride
        self.shape, self.strides = (height, width), ()
        if row_stride != width or column_stride != 1:
            self.strides = (row_stride, column_stride)
        return 0

    cdef bytes elements_of(
        self, data, long long row, long long column, long long height, long long width
    ):
        """The elements of a tile in row-major order."""
        cdef bytes content = PyBytes_FromStringAndSize(NULL, height * width * self.item)
        cdef char *to = PyBytes_AS_STRING(content)
        cdef Py_buffer buffer
        cdef const char *start
        cdef long long index, each, item = self.item
        PyObject_GetBuffer(data, &buffer, PyBUF_STRIDES)
        start = <const char *> buffer.buf + row * buffer.strides[0] + column * buffer.strides[1]
        for index in range(height):
            if buffer.strides[1] == item:
                memcpy(to, start, width * item)
            else:
                for each in range(width):
                    memcpy(to + each * item, start + each * buffer.strides[1], item)
            to += width * item
            start += buffer.strides[0]
        PyBuffer_Release(&buffer)
        return content
