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


cdef object _WRITE, _ACK, _DATA, _ARRIVAL, _ATOMIC, _OLD


cdef class MemoryPort(TransferStore):
    cdef readonly object memory, packets, accept
    cdef Calendar _engine
    cdef Outlet _outlet
    cdef int _sip, _node
    cdef long long _base, _control_bytes, _packet_bytes
    cdef list _ring_bases
    cdef dict _rings
    cdef list _early

    @cython.locals(
        transfer=FabricTransfer, answer=FabricTransfer, piece=Packet, offset=cython.longlong,
        nbytes=cython.longlong, begin=cython.longlong, size=cython.longlong,
    )
    cdef void _combine(self, Packet packet) except *
    cdef void _write(self, long long offset, object rows, object data) except *
    cdef bytes _read(self, long long offset, object rows, long long nbytes)
    cdef void _announce(self, Packet packet) except *
    cdef object _owner(self, long long address)
    @cython.locals(about=FabricTransfer, notice=FabricTransfer)
    cdef void _notify(self, Packet packet, object kind, int sip, int node) except *
