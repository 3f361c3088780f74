"""The tokens of products, in C: see step_tokens.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.pe.tile_buffers cimport FreeList
from sip_node.compiled.tile_token cimport Token


cdef class TokenSource:
    cdef object tile_type
    cdef object gemm
    cdef object output_of
    cdef object source_a
    cdef object source_b
    cdef object shapes
    cdef tuple sources
    cdef tuple steps
    cdef tuple whole
    cdef list rows
    cdef list depths
    cdef list columns
    # The tiles of the operands in row-major order, None until the first step that needs them.
    cdef list tiles_a
    cdef list tiles_b
    # By rows and columns of a step: the shapes of all depths.
    cdef dict shapes_of
    cdef FreeList buffers
    cdef long long submitted_ps
    cdef long long index
    # The place of the next step.
    cdef Py_ssize_t row
    cdef Py_ssize_t depth
    cdef Py_ssize_t column
    # Those of the output tile of the last token.
    cdef object output
    cdef list output_shapes
    # The calendar to mark when an output tile begins; None for none.
    cdef public Calendar calendar

    cdef Token following(self)
    cdef object tile(
        self, list tiles, Py_ssize_t index, object source, object rows, object columns
    )
    cdef int begin_output(self, object rows, object columns) except -1
    cdef int go_on(self, Py_ssize_t depths) except -1
    cdef int go_to(self, long long index) except -1
    cdef int relabel(self, Token token) except -1


cdef class TokenQueue:
    cdef FreeList buffers
    cdef object waiting

    cdef int issue(self) except -1
