"""Memory in C that is free when its owner is: see arena.pyx."""

cdef struct Cycles:
    # A queue of cycles: `count` of them in a ring of mask + 1 places, from `begin` on.
    long long *places
    unsigned int begin
    unsigned int count
    unsigned int mask


cdef class Arena:
    cdef list blocks

    cdef void *take(self, size_t count, size_t nbytes) except NULL


cdef int push(Arena arena, Cycles *queue, long long cycle) except -1


cdef inline long long oldest(Cycles *queue) noexcept nogil:
    return queue.places[queue.begin]


cdef inline long long pop(Cycles *queue) noexcept nogil:
    cdef long long cycle = queue.places[queue.begin]
    queue.begin = (queue.begin + 1) & queue.mask
    queue.count -= 1
    return cycle
