"""The slots of messages that a kernel sends, in C: see slot_sends.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.completion cimport AnyCompletion as Completion, Continuation
from sip_node.compiled.queue_state cimport QueueState
from sip_node.compiled.queue_table cimport QueuesByDirection


cdef class SentMessage(Continuation):
    cdef readonly QueueState queue
    cdef readonly str background
    cdef object block
    cdef object data
    cdef readonly long long nbytes
    cdef readonly long long sent
    cdef public Completion paused
    # What `PeerWait` has: the message stands for the wait for its credits.
    cdef readonly str operation
    cdef readonly str line
    cdef readonly str direction
    cdef readonly long long since_ps
    cdef bint starved
    cdef SlotSends sends
    cdef int step
    # The first address and the type of the block, and the bytes of an element.
    cdef long long address
    cdef object dtype
    cdef long long item
    cdef object slot


cdef class SlotSends:
    cdef public dict _background
    cdef Calendar calendar
    cdef long long issue_ps
    cdef object wait
    cdef object dma
    cdef QueuesByDirection table
    # Whether a collective that reserves the queues stops this kernel.
    cdef bint excluded
    cdef str call
    cdef object trace
    cdef object part_of
    cdef object item_bytes

    cdef int issue(self, SentMessage message) except -1
    cdef int reserve(self, SentMessage message) except -1
    cdef int write(self, SentMessage message, long long address) except -1
    cdef int left(self, SentMessage message) except -1
    cdef int next(self, SentMessage message) except -1
    cdef object part(self, SentMessage message, long long start, long long nbytes)
