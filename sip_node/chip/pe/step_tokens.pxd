"""The C types of step_tokens.py."""

cimport cython

from sip_node.chip.pe.tile_buffers cimport FreeList
from sip_node.chip.pe.tile_token cimport OutputTile, TileToken
from sip_node.kernel.calendar cimport Calendar


cdef class TileGrid:
    cdef object _source
    cdef list _rows, _columns, _tiles

    @cython.locals(index=cython.Py_ssize_t)
    cdef object at(self, Py_ssize_t row, Py_ssize_t column)


cdef class StepTokens:
    cdef object gemm, output_of, _shapes
    cdef tuple _steps, _whole
    cdef list rows, depths, columns
    cdef TileGrid a, b
    cdef dict _shapes_of
    cdef FreeList _buffers
    cdef long long submitted_ps, index, _count
    cdef OutputTile output
    cdef list _output_shapes
    cdef public Calendar calendar

    @cython.locals(token=TileToken, depth=cython.longlong)
    cdef TileToken following(self)
    @cython.locals(
        depths=cython.longlong, columns=cython.longlong, depth=cython.longlong,
        output=cython.longlong, row=cython.longlong, column=cython.longlong,
    )
    cdef void place(self, TileToken token) except *
    cdef void _begin_output(self, tuple rows, tuple columns) except *


cdef class TokenQueue:
    cdef FreeList _buffers
    cdef object _waiting

    @cython.locals(tokens=StepTokens, token=TileToken)
    cpdef void _issue(self) except *
