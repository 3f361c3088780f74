"""Matrices in memory, tile by tile, in C: see streamed_matrix.pyx."""

from sip_node.compiled.tile_data cimport BufferBlocks


cdef class TileForm:
    # What tiles of one size of a matrix have in common.
    cdef tuple shape
    cdef object dtype
    cdef str element
    cdef long long nbytes
    # The strides of their rows, and these rows; () and None for tiles without gaps.
    cdef tuple gaps
    cdef object rows
    # Those of the stage that loads them, from the first one on.
    cdef BufferBlocks buffers


cdef class StreamedTile:
    cdef TileForm form
    cdef list physical
    # Of a tile of one piece: that piece in a tuple, and what its READ has once it is located.
    cdef tuple inputs
    cdef long long address
    cdef object rows
    cdef bint is_located
    cdef int sip
    cdef int node
    # The matrix whose tiles are all in one memory, else None.
    cdef StreamedMatrix matrix


cdef class StreamedMatrix:
    cdef object layout_of
    cdef object dtype
    cdef bint blocked
    cdef long long rows
    cdef long long columns
    # Of a full tile.
    cdef long long height
    cdef long long width
    # Strides in elements, and bytes of an element.
    cdef long long row_stride
    cdef long long column_stride
    cdef long long item
    # Where all of it is one physical block, its address; else its tiles by their first element.
    cdef long long base
    cdef dict tiles
    cdef bint is_located
    cdef int sip
    cdef int node
    # By whether a tile is less high, and less wide, than a full one.
    cdef list forms

    cdef int find_base(self, ref, blocks) except -1
    cdef int translate(self, ref, blocks) except -1
    cdef long long offset(self, long long row, long long column) noexcept
    cdef TileForm form(self, long long row, long long column)
    cdef StreamedTile tile_at(self, rows, columns)
