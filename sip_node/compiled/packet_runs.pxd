"""Packets that wait for a message, in C: see packet_runs.pyx."""

from sip_node.compiled.link_egress cimport LinkEnd
from sip_node.compiled.packet cimport Packet

cdef enum:
    # Head, tail, number, begin and size of a packet.
    COLUMNS = 5


cdef class OpenRun:
    cdef readonly long long number
    cdef readonly bint is_first
    cdef readonly bint ends
    cdef long long *values
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    cdef int append(
        self, long long head_ps, long long tail_ps, long long seq, Packet packet
    ) except -1
    cdef tuple column(self, int column)


cdef class Runs(LinkEnd):
    cdef dict open_runs
    cdef dict numbers
    cdef object begin
    cdef Py_ssize_t limit
