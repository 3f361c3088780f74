"""One queue pair of a PE at work, in C: see queue_state.pyx."""

from sip_node.chip.completion cimport AnyCompletion as Completion


cdef class Slot:
    cdef readonly long long address
    cdef readonly long long nbytes
    cdef readonly str dtype
    cdef readonly str call


cdef class QueueState:
    cdef readonly str table
    cdef readonly object arrived
    cdef readonly long long sent
    cdef public long long credits
    cdef readonly long long filled
    cdef readonly long long taken
    # The pair, and what is read from it for every slot; a queue without a ring has address -1.
    cdef object queue_pair
    cdef object direction
    cdef long long n_slots
    cdef long long slot_size
    cdef long long rx_base
    cdef long long tx_base
    cdef object announce
    cdef dict early
    cdef Completion sender
    # The PE of the peer on the fabric; -1 before the first message to it.
    cdef int peer_sip
    cdef int peer_node

    cdef long long reserve(self) except -1
    cdef int put(self, Slot slot) except -1
    cdef int add_credit(self) except -1
    cdef long long read_out(self) except -1
    cdef long long in_own_ring(self, long long number) except -1


cdef Slot new_slot(long long address, long long nbytes, str dtype, str call)
