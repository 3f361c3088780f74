cimport cython

from sip_node.chip.fabric.packet cimport Packet
from sip_node.kernel.component cimport Endpoint


cdef class ForeignPart(Endpoint):
    cdef object _receiver


cdef class PacketSwitch(Endpoint):
    cdef list _parts

    @cython.locals(part=Endpoint)
    cpdef void accept(self, Packet packet, long long tail_ps) except *
