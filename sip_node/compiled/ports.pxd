"""What the loops over packets call, in C or in Python: see ports.pyx."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.credited_hops cimport CreditedHops
from sip_node.compiled.hops cimport Hops
from sip_node.compiled.server cimport FifoServer, Service


cdef class Port:
    cdef FifoServer server
    cdef object in_python

    cdef int serve(
        self, long long head_ps, long long tail_ps, long long nbytes, Service *service
    ) except -1


cdef class Outlet:
    cdef Hops hops
    cdef CreditedHops credited_hops
    cdef object in_python
    cdef int node

    cdef int send(self, Packet packet, long long tail_ps) except -1
