"""Packets that wait for a message, in C: see packet_runs.pyx."""

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.compiled.link_egress cimport LinkEnd

cdef enum:
    # Head, tail, number, begin and size of a packet.
    COLUMNS = 5


cdef class OpenRun:
    cdef FabricTransfer transfer
    cdef long long number
    cdef bint is_first
    cdef bint ends
    cdef long long *values
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    cdef int append(
        self, long long head_ps, long long tail_ps, long long seq, Packet packet
    ) except -1


cdef class Runs(LinkEnd):
    cdef readonly long long source
    cdef long long target
    cdef long long transfers
    cdef dict numbers
    cdef dict open_runs
    cdef list runs
    cdef object message
    cdef Py_ssize_t limit

    cdef OpenRun begin(self, FabricTransfer transfer)
