"""The C types of queue_table.py."""

cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.pe.queue_state cimport QueueState, Slot
from sip_node.kernel.calendar cimport Calendar
from sip_node.kernel.outlet cimport Outlet


cdef class QueueTable:
    cdef readonly str name
    cdef public object listener
    cdef public str call
    cdef public str user
    cdef dict _queues
    cdef dict _posted
    cdef dict _receiving
    cdef object _context
    cdef Calendar _engine
    cdef Outlet _outlet
    cdef int _sip
    cdef int _node

    cpdef QueueState queue(self, str direction)
    @cython.locals(queue=QueueState)
    cpdef Py_ssize_t full_slots(self, str direction) except -1
    cdef int return_credit(self, QueueState queue) except -1
    @cython.locals(queue=QueueState)
    cpdef int ready(self, str call, object transfer) except -1
    cpdef bint begin_message(self, str direction, str call) except -1
    cpdef int end_message(self, str direction, str call) except -1
    cdef int _notify(self, QueueState queue, object kind, long long address, str call) except -1
    cdef Slot _head(self, str direction)
