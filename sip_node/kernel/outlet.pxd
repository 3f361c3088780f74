"""A node of the fabric, in C: see outlet.pyx."""

from sip_node.chip.fabric.clocked.credited_fabric cimport CreditedFabric
from sip_node.chip.fabric.hops cimport Hops
from sip_node.chip.fabric.packet cimport Packet


cdef class Outlet:
    cdef Hops hops
    cdef CreditedFabric credited_fabric
    cdef object in_python
    cdef int node

    cpdef int send(self, Packet packet, long long tail_ps) except -1
