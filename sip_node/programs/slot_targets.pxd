"""The C types of slot_targets.py."""

cimport cython


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
