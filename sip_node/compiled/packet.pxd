"""Packets in C: see packet.pyx."""

from sip_node.compiled.packet_train cimport PacketTrain
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
    # Of its transfer in this SIP, in a run with records, and what it has queued there at links.
    cdef public PacketTrain train
    cdef public long long link_ps
    cdef public long long longest_ps
    cdef public str longest_link

    cdef int wait(self, long long waited_ps, str link) except -1


cdef Packet new_packet(Transfer transfer, long long begin, long long size, bint last)
