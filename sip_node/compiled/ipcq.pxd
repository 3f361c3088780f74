"""Arrivals of slots and of credits at a PE, in C: see ipcq.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.compiled.hops cimport Endpoint
from sip_node.chip.op_log cimport OpLog
from sip_node.compiled.queue_state cimport QueueState
from sip_node.chip.fabric.packet cimport FabricTransfer


cdef class Ring:
    # Bytes [base, end) belong to the slots of a queue.
    cdef long long base
    cdef long long end
    cdef QueueState queue


cdef class RingsByAddress:
    cdef list rings

    cdef Py_ssize_t rings_from(self, long long address) except -1
    cdef QueueState at(self, long long address)


cdef class IpcqArrivals(Endpoint):
    cdef public long long _overhead_ps
    cdef public RingsByAddress _receive_rings
    cdef public RingsByAddress _send_rings
    cdef Calendar calendar
    cdef int number
    cdef OpLog log
    cdef object owner
    cdef object ready
    cdef tuple elements
    cdef int arrival
    cdef int credit
    cdef int cube
    cdef int pe

    cdef int arrived(self, FabricTransfer slot) except -1
    cdef QueueState owner_of(self, RingsByAddress rings, long long address)
