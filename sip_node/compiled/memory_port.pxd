"""The port of a memory in C: see memory_port.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.memory.memory cimport Memory
from sip_node.compiled.memory_packets cimport TransferStore
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.compiled.ports cimport Outlet


cdef class Ring:
    # A receive ring, and the node of the PE that owns it.
    cdef long long begin
    cdef long long end
    cdef int owner


cdef class MemoryPort(TransferStore):
    cdef readonly Memory memory
    cdef readonly object packets
    cdef readonly object accept
    cdef Calendar calendar
    cdef Outlet outlet
    cdef long long base
    cdef long long control_bytes
    cdef int sip
    cdef int node
    # `Kind.DATA`, `Kind.ACK` and `Kind.IPCQ_ARRIVAL`.
    cdef object data
    cdef object ack
    cdef object arrival
    # In rising order of their addresses.
    cdef list rings
    cdef list early

    cdef int announce(self, Packet packet) except -1
    cdef Ring ring_at(self, long long address)
    cdef int notify(self, Packet packet, object kind, int sip, int node) except -1
