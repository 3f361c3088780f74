"""A node of the fabric, in C: see outlet.pyx."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.credited_hops cimport CreditedHops
from sip_node.chip.fabric.hops cimport Hops


cdef class Outlet:
    cdef Hops hops
    cdef CreditedHops credited_hops
    cdef object in_python
    cdef int node

    cpdef int send(self, Packet packet, long long tail_ps) except -1
