cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.records.packet_train cimport PacketTrain
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.memory.access cimport Access, AccessService
from sip_node.chip.memory.memory_packets cimport TransferStore
from sip_node.kernel.calendar cimport Calendar
from sip_node.kernel.containers.int_array cimport IntArray
from sip_node.kernel.outlet cimport Outlet

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


cdef object _WRITE, _ACK, _DATA, _ARRIVAL


cdef class MemoryPort(TransferStore):
    cdef readonly object memory, packets, accept
    cdef Calendar _engine
    cdef Outlet _outlet
    cdef int _sip, _node
    cdef long long _base, _control_bytes
    cdef list _ring_bases
    cdef dict _rings
    cdef list _early

    cdef void _announce(self, Packet packet) except *
    cdef object _owner(self, long long address)
    @cython.locals(about=FabricTransfer, notice=FabricTransfer)
    cdef void _notify(self, Packet packet, object kind, int sip, int node) except *
