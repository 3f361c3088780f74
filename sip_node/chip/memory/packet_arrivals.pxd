cimport cython

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.kernel.containers.int_array cimport IntArray


cdef class PacketArrivals:
    cdef long long _begin_ps, _turns
    cdef dict _numbers
    cdef IntArray _fields

    @cython.locals(transfer=FabricTransfer, fields=IntArray)
    cpdef void append(
        self, Packet packet, long long head_ps, long long tail_ps, long long turns
    ) except *
