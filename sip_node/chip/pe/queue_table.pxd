cimport cython

from sip_node.chip.completion cimport AnyCompletion
from sip_node.chip.fabric cimport packet as packets
from sip_node.kernel.calendar cimport Calendar
from sip_node.kernel.outlet cimport Outlet


@cython.freelist(64)
cdef class Slot:
    cdef readonly long long address, nbytes
    cdef readonly str dtype, call


@cython.locals(slot=Slot)
cpdef Slot new_slot(long long address, long long nbytes, str dtype, str call)


cdef class QueueState:
    cdef readonly str table
    cdef readonly object arrived
    cdef readonly long long sent
    cdef public long long credits
    cdef readonly long long filled, taken
    cdef object queue_pair
    cdef str direction
    cdef long long n_slots, slot_size, rx_base, tx_base
    cdef object _announce
    cdef dict _early
    cdef AnyCompletion _sender
    cdef int peer_sip, peer_node

    cdef long long reserve(self) except -1
    cpdef AnyCompletion acquire(self)
    cpdef int fill(self, Slot slot) except -1
    cpdef int credit(self) except -1
    cpdef long long release(self) except -1
    cpdef repeat(
        self, long long sent, long long filled, long long taken, long long credits_back
    )
    cdef int _append(self, Slot slot) except -1
    cdef long long _in_own_ring(self, long long number) except -1


cdef class QueueTable:
    cdef readonly str name
    cdef public object listener
    cdef public str call, user
    cdef public long long kept
    cdef dict _queues, _posted, _receiving
    cdef object _context
    cdef Calendar _engine
    cdef Outlet _outlet
    cdef int _sip, _node

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
