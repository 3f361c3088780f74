"""Matrices in TCM, tile by tile, in C: see staged_matrix.pyx."""

from sip_node.compiled.tile_data cimport Element, TileData


cdef class StagedMatrix:
    cdef object value
    cdef object dtype
    cdef str element
    cdef Element kind
    cdef long long address
    # Strides in elements, and bytes of an element.
    cdef long long row_stride
    cdef long long column_stride
    cdef long long item
    # The tiles that were cut by `at`.
    cdef dict tiles
    # Of the last tile: its shape, and its strides as the op log has them.
    cdef tuple shape
    cdef tuple strides

    cdef TileData tile_at(self, rows, columns)
    cdef int find_form(self, long long height, long long width) except -1
    cdef bytes elements_of(
        self, data, long long row, long long column, long long height, long long width
    )
