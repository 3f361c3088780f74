"""The C types of port_turns.py."""

cimport cython

from sip_node.chip.fabric.packet_train cimport PacketTrain
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.memory.access cimport Access, AccessService
from sip_node.kernel.int_array cimport IntArray

cdef int _NEXT


cdef class PortTurns(AccessService):
    cdef FifoServer _port
    cdef IntArray _channels
    cdef dict _later

    @cython.locals(
        port=FifoServer, train=PacketTrain, now_ps=cython.longlong, start_ps=cython.longlong,
        end_ps=cython.longlong,
    )
    cdef void _reserve(self, Access access, object behind) except *
