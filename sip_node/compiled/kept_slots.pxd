"""The slots of receive rings that a kernel uses in place, in C: see kept_slots.pyx."""

from sip_node.compiled.queue_state cimport QueueState
from sip_node.compiled.queue_table cimport QueuesByDirection


cdef class KeptMessage:
    cdef QueueState queue
    cdef long long slots
    cdef bint released


cdef class KeptSlots:
    cdef QueuesByDirection queues
    # The addresses of the own TCM: its first byte, and that behind the last one.
    cdef long long first
    cdef long long behind_last
    cdef dict behind
    cdef dict used

    cdef long long keep_next(self, QueueState queue, long long nbytes) except -2
    cdef int slot_read(self, QueueState queue) except -1
    cdef bint release_at(self, long long address) except -1
