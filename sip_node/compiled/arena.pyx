"""Memory in C that is free when its owner is, and queues of cycles in it."""

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free

cdef enum:
    FIRST_PLACES = 8


# The collector, which clears the attributes of an object before it dies, would take `blocks` away;
# numbers are in no cycle.
@cython.no_gc
cdef class Arena:
    """Memory that is free when this object is."""

    def __cinit__(self):
        self.blocks = []

    def __dealloc__(self):
        for block in self.blocks:
            PyMem_Free(<void *> <size_t> block)

    cdef void *take(self, size_t count, size_t nbytes) except NULL:
        """Room for `count` items of `nbytes`, all zero."""
        cdef void *block = PyMem_Calloc(count if count else 1, nbytes)
        if not block:
            raise MemoryError
        self.blocks.append(<size_t> block)
        return block


cdef int push(Arena arena, Cycles *queue, long long cycle) except -1:
    """Append a cycle; the ring doubles when it is full."""
    cdef unsigned int index
    cdef long long *places
    if not queue.places or queue.count > queue.mask:
        places = <long long *> arena.take(
            2 * queue.count if queue.count else FIRST_PLACES, sizeof(long long)
        )
        for index in range(queue.count):
            places[index] = queue.places[(queue.begin + index) & queue.mask]
        queue.places, queue.begin = places, 0
        queue.mask = (2 * queue.count if queue.count else FIRST_PLACES) - 1
    queue.places[(queue.begin + queue.count) & queue.mask] = cycle
    queue.count += 1
    return 0
