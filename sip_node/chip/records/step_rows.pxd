"""The rows of the steps of programs, in C: see step_rows.pyx."""

from cpython.ref cimport PyObject
from sip_node.compiled.packed_rows cimport PackedRows

cdef extern from "Python.h":
    ctypedef struct PyFrameObject


cdef packed struct StepRow:
    # The columns of `STEPS`; texts as indices.
    long long step
    int program, operation, line
    long long begin_ps, issued_ps, end_ps
    int cause
    long long released_by
    int direction
    short peer_sip, peer_cube, peer_pe
    int scratch_bytes


cdef enum:
    # Powers of two.
    RECENT_CODES = 256
    RECENT_LINES = 16


cdef struct RecentLine:
    # Of the instruction `instruction - 1`; 0 at first.
    int instruction, text


cdef class CodeLines:
    cdef object code
    cdef PyObject *address
    cdef bint is_language
    cdef dict texts
    # The lines used last, by a hash of their instructions.
    cdef RecentLine[RECENT_LINES] recent


cdef class StepRows(PackedRows):
    cdef dict codes
    # The values of `codes` used last, by a hash of the addresses of the codes; and the addresses of
    # those of the language: a search for a line needs one of them for each frame between a kernel
    # and the chip, and all other memory for it would be in no cache.
    cdef void *recent_codes[RECENT_CODES]
    cdef PyObject *language_codes[RECENT_CODES]
    cdef long long numbers

    cdef CodeLines lines_of(self, PyFrameObject *frame, PyObject *code)
    cdef int line_at(self, CodeLines lines, PyFrameObject *frame) except -1
    cdef int kernel_line(self) except -1
    cdef long long new_step(self) except -1
    cdef int add(
        self, long long step, int program, int operation, int line, long long begin_ps,
        long long issued_ps, long long end_ps, int cause, long long released_by, int direction,
        int peer_sip, int peer_cube, int peer_pe, int scratch_bytes
    ) except -1
