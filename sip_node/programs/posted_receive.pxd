"""The C types of posted_receive.py."""

from sip_node.chip.completion cimport AnyCompletion, Continuation
from sip_node.chip.pe.queue_table cimport QueueState, Slot


cdef class ReceiveSteps:
    cdef int command_issued(self, Receive receive) except -1
    cdef int slot_copied(self, Receive receive, object data) except -1


cdef class Receive(Continuation):
    cdef readonly str direction
    cdef readonly object dtype, targets
    cdef readonly str line
    cdef readonly bint in_tcm, in_place
    cdef readonly long long kept
    cdef readonly AnyCompletion done
    cdef public object state
    cdef str source
    cdef object parts
    cdef list received
    cdef QueueState queue
    cdef Slot slot
    cdef bint divided
    cdef ReceiveSteps steps

    cpdef int enter(self, object state) except -1
