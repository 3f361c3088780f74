"""The C types of step_tokens.py."""

cimport cython

from sip_node.chip.pe.tile_buffers cimport FreeList
from sip_node.chip.pe.tile_token cimport OutputTile, TileToken
from sip_node.compiled.calendar cimport Calendar


cdef class StepTokens:
    cdef object gemm
    cdef object output_of
    cdef object _source_a
    cdef object _source_b
    cdef object _shapes
    cdef tuple _steps
    cdef tuple _whole
    cdef list rows
    cdef list depths
    cdef list columns
    cdef list _tiles_a
    cdef list _tiles_b
    cdef dict _shapes_of
    cdef FreeList _buffers
    cdef long long submitted_ps
    cdef long long index
    cdef Py_ssize_t _row
    cdef Py_ssize_t _depth
    cdef Py_ssize_t _column
    cdef OutputTile output
    cdef list _output_shapes
    cdef public Calendar calendar

    @cython.locals(token=TileToken)
    cdef TileToken following(self)
    cdef object tile_a(self, Py_ssize_t row, Py_ssize_t depth)
    cdef object tile_b(self, Py_ssize_t depth, Py_ssize_t column)
    cdef void _begin_output(self, tuple rows, tuple columns) except *
    @cython.locals(depths=cython.longlong, columns=cython.longlong, output=cython.longlong)
    cdef void go_to(self, long long index) except *
    @cython.locals(
        depths=cython.longlong, columns=cython.longlong, output=cython.longlong,
        row=cython.longlong, depth=cython.longlong, column=cython.longlong,
    )
    cdef void relabel(self, TileToken token) except *


cdef class TokenQueue:
    cdef FreeList _buffers
    cdef object _waiting

    @cython.locals(tokens=StepTokens, token=TileToken)
    cpdef void _issue(self) except *
