"""The slots of messages that a kernel receives, in C: see slot_receives.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.completion cimport AnyCompletion as Completion, Continuation
from sip_node.compiled.kept_slots cimport KeptSlots
from sip_node.compiled.queue_state cimport QueueState, Slot
from sip_node.compiled.queue_table cimport QueuesByDirection


cdef class ReceivedMessage(Continuation):
    cdef readonly str direction
    cdef readonly object dtype
    cdef readonly object targets
    cdef readonly str line
    cdef readonly bint in_tcm
    cdef readonly bint in_place
    cdef public long long kept
    cdef readonly Completion done
    cdef public str source
    cdef public int step
    cdef SlotReceives receives
    cdef QueueState queue
    cdef list received
    cdef Slot slot
    # The bytes of the message; `begun` of them are in slots that were taken.
    cdef long long nbytes
    cdef long long begun
    # Whether a slot goes to several targets, whose parts it has.
    cdef bint divided
    # The parts of slots that are still to come; None of a message with one target.
    cdef object parts
    # The address of the one target, the name of its type, and the bytes of an element.
    cdef long long address
    cdef str element
    cdef long long item

    cdef int change(self, int step) except -1
    cdef object next_target(self, long long nbytes)


cdef class SlotReceives:
    cdef public list _posted
    cdef public dict _matched
    cdef public KeptSlots _kept
    cdef Calendar calendar
    cdef long long issue_ps
    cdef object dma
    cdef QueuesByDirection queues
    cdef str call
    cdef object trace
    cdef bint by_call
    cdef object functions

    cdef int match(self) except -1
    cdef int begin(self, ReceivedMessage receive) except -1
    cdef int keep_slots(self, ReceivedMessage receive) except -1
    cdef int read_slot(self, ReceivedMessage receive) except -1
    cdef int copy(self, ReceivedMessage receive, Slot slot, blocks) except -1
    cdef int copied(self, ReceivedMessage receive, data) except -1
    cdef int complete(self, ReceivedMessage receive, data) except -1
    cdef int issued(self, ReceivedMessage receive) except -1
