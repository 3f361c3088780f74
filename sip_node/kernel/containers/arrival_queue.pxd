"""Packets that arrive, by (time, source, seq), in C: see arrival_queue.pyx."""

cimport cython

cdef struct Arrival:
    # A packet by its place in the total order; the packet is in slot `slot`.
    long long time_ps
    long long source
    long long seq
    long long tail_ps
    unsigned int slot


@cython.final
cdef class ArrivalQueue:
    cdef readonly long long source
    cdef readonly long long tail_ps
    cdef Arrival *heap
    cdef unsigned int size
    cdef unsigned int capacity
    cdef list packets
    cdef list free_slots

    cpdef long long first_ps(self) noexcept
    cpdef int put(
        self, long long time_ps, long long source, long long seq, long long tail_ps, object packet
    ) except -1
    cpdef object pop(self)
    cdef int grow(self) except -1
