"""The rows of the steps of programs, in C: see step_rows.pyx."""

from cpython.ref cimport PyObject
from sip_node.compiled.packed_rows cimport PackedRows

cdef extern from "Python.h":
    ctypedef struct PyFrameObject


cdef packed struct StepRow:
    # The columns of `STEPS`; texts as indices.
    long long step
    int program
    int operation
    int line
    long long begin_ps
    long long issued_ps
    long long end_ps
    int cause
    long long released_by
    int direction
    short peer_sip
    short peer_cube
    short peer_pe
    int scratch_bytes


cdef class CodeLines:
    cdef object code
    cdef bint is_language
    cdef dict texts


cdef class StepRows(PackedRows):
    cdef dict codes
    cdef long long numbers

    cdef CodeLines lines_of(self, PyFrameObject *frame, PyObject *code)
    cdef int kernel_line(self) except -1
