"""The C types of memory_port.py."""

cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.fabric.packet_train cimport PacketTrain
from sip_node.chip.memory.memory_packets cimport TransferStore
from sip_node.compiled.calendar cimport Calendar
from sip_node.kernel.outlet cimport Outlet

cdef object _WRITE, _ACK, _DATA, _ARRIVAL


cdef class MemoryPort(TransferStore):
    cdef readonly object memory
    cdef readonly object packets
    cdef readonly object accept
    cdef Calendar _engine
    cdef Outlet _outlet
    cdef int _sip
    cdef int _node
    cdef long long _base
    cdef long long _control_bytes
    cdef list _ring_bases
    cdef dict _rings
    cdef list _early

    cdef void _announce(self, Packet packet) except *
    cdef object _owner(self, long long address)
    @cython.locals(about=FabricTransfer, notice=FabricTransfer)
    cdef void _notify(self, Packet packet, object kind, int sip, int node) except *
