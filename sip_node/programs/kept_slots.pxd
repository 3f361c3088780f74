cimport cython

from sip_node.chip.pe.queue_table cimport QueueState, QueueTable, Slot


cdef class SlotTargets:
    cdef list blocks
    cdef long long nbytes


@cython.locals(
    room=cython.longlong, start=cython.longlong, nbytes=cython.longlong, item=cython.longlong,
    count=cython.longlong, blocks=list,
)
cpdef object cut_in_slots(object targets, long long slot_size)
cpdef object slot_part(
    object block, long long whole, long long item, long long start, long long nbytes
)


cdef class KeptMessage:
    cdef QueueState queue
    cdef long long slots
    cdef bint released


cdef class KeptSlots:
    cdef QueueTable _queues
    cdef long long _first, _end
    cdef dict _behind, _used

    @cython.locals(first=Slot)
    cdef long long keep(self, QueueState queue, long long nbytes) except -2
    cdef int copied(self, QueueState queue, long long address) except -1
    cdef int slot_copied(self, QueueState queue) except -1
    @cython.locals(message=KeptMessage, oldest=KeptMessage, _=cython.longlong)
    cpdef bint release(self, long long address) except -1
