cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.packet cimport FabricTransfer
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.kernel.component cimport Component
from sip_node.kernel.outlet cimport Outlet

cdef int _LEAVE


cdef class Departure:
    cdef FabricTransfer transfer
    cdef long long packet_bytes, begin, nbytes, left_ps


cdef class EgressStream(Component):
    cdef FifoServer _port
    cdef Outlet _outlet
    cdef object _left

    cpdef void start(self, FabricTransfer transfer, long long packet_bytes) except *
    # hot
    cdef void _reserve(self, Departure departure) except *
    @cython.locals(
        departure=Departure, transfer=FabricTransfer, begin=cython.longlong,
        left_ps=cython.longlong,
    )
    cpdef void proceed(self, int step, object subject) except *
