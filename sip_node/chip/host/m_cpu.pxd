cimport cython

from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.host.cpu_port cimport CpuPort
from sip_node.kernel.component cimport Component

cdef int _ARRIVED


cdef class MCpu(Component):
    cdef object _chip
    cdef int _cube
    cdef list _pes
    cdef CpuPort _port

    @cython.locals(packet=Packet)
    cpdef void proceed(self, int step, object subject) except *
