"""Tiles of operands in TCM, in C; see `sip_node.chip.pe.operand_tiles`.

A tile in TCM is read by every step that uses it. So what the steps need of it is at hand: the
address of its elements, and what its records have in common.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING

import numpy as np

cdef object ndarray = np.ndarray


cdef class TileData:
    """The twin of `ReferenceTileData`."""

    def __init__(self, block not None, long long nbytes, data, unsigned int checksum):
        cdef Py_buffer buffer
        self.block, self.nbytes, self.checksum = block, nbytes, checksum
        self.shape, self.element, self.inputs = block.shape, block.dtype, (block,)
        self.array, self.kind = data, kind_of(self.element)
        if data is not None and self.kind != OTHER and data.flags.c_contiguous:
            # The elements stay where they are as long as the array exists.
            PyObject_GetBuffer(data, &buffer, PyBUF_C_CONTIGUOUS)
            self.elements = <const char *> buffer.buf
            PyBuffer_Release(&buffer)

    @property
    def data(self):
        """The elements, or None in a run without data."""
        if self.array is None and self.content:
            self.array = ndarray(self.shape, self.dtype.numpy, self.content)
        return self.array


cdef class BufferBlocks:
    """Made by the stage that loads tiles."""


cdef TileData loaded_tile(BufferBlocks buffers, tuple inputs, bytes content, unsigned int checksum):
    """A tile in a buffer, of which `inputs` has the block; without `content` it has no data."""
    cdef TileData tile = TileData.__new__(TileData)
    tile.block, tile.inputs, tile.nbytes = inputs[0], inputs, buffers.nbytes
    tile.shape, tile.element, tile.kind = buffers.shape, buffers.element, buffers.kind
    tile.dtype, tile.content, tile.checksum = buffers.dtype, content, checksum
    if content and tile.kind != OTHER:
        tile.elements = PyBytes_AS_STRING(content)
    return tile


cdef Element kind_of(str element):
    """How the elements of a type, by its name in the op log, are read."""
    return HALF if element == "f16" else SINGLE if element == "f32" else OTHER
