"""The operations of all SIPs in one order, in C: see total_order.pyx."""

from coordinator.compiled.packed_values cimport Cursor


cdef struct Operation:
    # Of the order: the start, the SIP, the position in its log.
    long long start_ps
    unsigned int sip
    unsigned int index
    long long end_ps
    Cursor packed
    unsigned int track
    unsigned int lane


cdef class TotalOrder:
    cdef Operation *operations
    cdef Py_ssize_t count
    # The bytes to which the operations refer.
    cdef list chunks
    cdef readonly list lanes

    cdef int add_chunk(self, object log, Py_ssize_t number, unsigned int sip) except -1
    cdef int assign_lanes(self, list tracks) except -1
