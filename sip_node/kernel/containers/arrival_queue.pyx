"""Packets that arrive, by (time, source, seq), in C. Its version in Python is `arrival_queue.py`.

The packets are in a binary heap.
"""

from cpython.mem cimport PyMem_Free

from runtime.core.compiled.memory_blocks cimport resized
from sip_node.kernel.exact cimport NEVER_PS

cdef enum:
    FIRST_CAPACITY = 16


cdef inline bint precedes(Arrival *first, Arrival *second) noexcept nogil:
    if first.time_ps != second.time_ps:
        return first.time_ps < second.time_ps
    if first.source != second.source:
        return first.source < second.source
    return first.seq < second.seq


cdef class ArrivalQueue:
    """A queue, empty at first."""

    def __cinit__(self):
        self.packets, self.free_slots = [], []

    def __dealloc__(self):
        PyMem_Free(self.heap)

    cpdef long long first_ps(self) noexcept:
        return self.heap[0].time_ps if self.size else NEVER_PS

    cpdef int put(
        self, long long time_ps, long long source, long long seq, long long tail_ps, object packet
    ) except -1:
        cdef Arrival arrival
        cdef unsigned int child, parent
        if self.size == self.capacity:
            self.grow()
        arrival.time_ps, arrival.source, arrival.seq = time_ps, source, seq
        arrival.tail_ps, arrival.slot = tail_ps, self.free_slots.pop()
        self.packets[arrival.slot] = packet
        child = self.size
        self.size += 1
        while child:
            parent = (child - 1) >> 1
            if not precedes(&arrival, &self.heap[parent]):
                break
            self.heap[child] = self.heap[parent]
            child = parent
        self.heap[child] = arrival
        return 0

    cpdef object pop(self):
        cdef Arrival first
        cdef Arrival *last
        cdef unsigned int gap = 0, child = 1
        if not self.size:
            raise IndexError("no packet arrives")
        first = self.heap[0]
        self.size -= 1
        last = &self.heap[self.size]
        while child < self.size:
            if child + 1 < self.size and precedes(&self.heap[child + 1], &self.heap[child]):
                child += 1
            if not precedes(&self.heap[child], last):
                break
            self.heap[gap] = self.heap[child]
            gap = child
            child = 2 * gap + 1
        self.heap[gap] = last[0]
        packet = self.packets[first.slot]
        self.packets[first.slot] = None
        self.free_slots.append(first.slot)
        self.source, self.tail_ps = first.source, first.tail_ps
        return packet

    def waiting(self):
        """(time, source, seq, tail, packet) of every packet, in their order."""
        cdef unsigned int index
        cdef Arrival *each
        arrivals = []
        for index in range(self.size):
            each = &self.heap[index]
            arrivals.append(
                (each.time_ps, each.source, each.seq, each.tail_ps, self.packets[each.slot])
            )
        # No two have one source and number, so packets are never compared.
        arrivals.sort()
        return arrivals

    cdef int grow(self) except -1:
        """Double the room for packets."""
        cdef unsigned int capacity = 2 * self.capacity if self.capacity else FIRST_CAPACITY
        self.heap = <Arrival *> resized(self.heap, capacity * sizeof(Arrival))
        self.packets.extend([None] * (capacity - self.capacity))
        self.free_slots.extend(range(self.capacity, capacity))
        self.capacity = capacity
        return 0
