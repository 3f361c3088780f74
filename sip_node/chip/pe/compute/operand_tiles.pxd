cimport cython

from sip_node.kernel cimport tile_data as tiles
from sip_node.kernel.tile_data cimport TileData


cdef class Staged:
    cdef object _value
    cdef dict _tiles

    cpdef TileData at(self, tuple rows, tuple columns)
    cdef TileData _cut(self, tuple rows, tuple columns)


cdef class TileForm:
    cdef readonly tuple shape
    cdef readonly object dtype
    cdef readonly str element
    cdef readonly long long nbytes
    cdef tuple gaps
    cdef object rows
    cdef list targets


cdef class StreamedTile:
    cdef readonly TileForm form
    cdef readonly list pieces
    cdef tuple inputs
    cdef long long address
    cdef object rows
    cdef int sip, node
    cdef Streamed matrix


cdef class Streamed:
    cdef object _pointer, _dtype
    cdef tuple _tile, _shape, _strides
    cdef list _forms
    cdef dict _tiles
    cdef bint _is_blocked
    cdef long long _height, _width, _rows, _columns, _row_stride, _column_stride, _item
    cdef long long _base, _elements
    cdef int sip, node

    @cython.locals(form=TileForm)
    cpdef StreamedTile at(self, tuple rows, tuple columns)
    cdef long long _whole(self, object blocks) except? -2
    @cython.locals(form=TileForm)
    cdef StreamedTile _translated(self, long long row, long long column, object blocks)
    cdef long long _offset(self, long long row, long long column) except? -2
    @cython.locals(
        form=TileForm, height=cython.longlong, width=cython.longlong, index=cython.Py_ssize_t
    )
    cdef TileForm _form(self, long long row, long long column)
