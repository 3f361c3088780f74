"""The queue pairs of a table of a PE, in C: see queue_table.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.kernel.outlet cimport Outlet
from sip_node.compiled.queue_state cimport QueueState, Slot


cdef class QueuesByDirection:
    cdef public dict _queues
    cdef public dict _posted
    cdef public dict _receiving
    cdef public object listener
    cdef public str call
    cdef public str user
    cdef Calendar calendar
    cdef Outlet outlet
    cdef object locate_pe
    cdef object credit_kind
    cdef int sip
    cdef int node

    cdef int return_credit(self, QueueState queue) except -1
    cdef int notify(self, QueueState queue, object kind, long long address, str call) except -1
