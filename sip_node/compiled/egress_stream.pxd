"""Transfers that leave a port packet by packet, in C: see egress_stream.pyx."""

from sip_node.compiled.calendar cimport Actor, Calendar
from sip_node.compiled.ports cimport Outlet, Port
from sip_node.chip.fabric.packet cimport FabricTransfer


cdef class Departure:
    cdef FabricTransfer transfer
    cdef long long total
    cdef long long packet_bytes
    cdef long long begin
    cdef long long nbytes
    cdef long long left_ps


cdef class EgressStream(Actor):
    cdef Calendar calendar
    cdef int number
    cdef Port port
    cdef Outlet outlet
    cdef object left

    cdef int begin(self, FabricTransfer transfer, long long packet_bytes) except -1
    cdef int reserve(self, Departure departure) except -1
    cdef int leave(self, Departure departure) except -1
