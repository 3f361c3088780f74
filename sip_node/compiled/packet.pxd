"""Packets in C: see packet.pyx."""

from sip_node.compiled.transfer cimport Transfer


cdef class Packet:
    cdef public Transfer transfer
    cdef public long long begin
    cdef public long long size
    cdef public bint last
    cdef public long long entrance_ps
    cdef public object space
    cdef public object came_from
    # The approach on which its time at the IO NoC is known; see approach.pyx.
    cdef object approach


cdef Packet new_packet(Transfer transfer, long long begin, long long size, bint last)
