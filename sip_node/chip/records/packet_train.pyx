"""The queueing of packets behind packets of other transfers, in C.

Its version in Python, `packet_train.py`, has the rules.
"""

cimport cython
from cpython.mem cimport PyMem_Free
from libc.string cimport memcpy

from runtime.core.compiled.memory_blocks cimport resized


cdef enum:
    MOST_CHANNELS = 64

PORT = -1


@cython.no_gc
@cython.freelist(256)
cdef class QueueTimes:
    """Times of one packet of an operation."""

    def __cinit__(self):
        self.link = ""

    cpdef int at_links(self, long long link_ps, str link) except -1:
        if link_ps > self.link_ps:
            self.link_ps, self.link = link_ps, link
        return 0

    cpdef int at_memory(self, long long memory_ps) except -1:
        if memory_ps > self.memory_ps:
            self.memory_ps = memory_ps
        return 0

    cpdef int add(self, QueueTimes other) except -1:
        self.at_links(other.link_ps, other.link)
        return self.at_memory(other.memory_ps)


@cython.no_gc
@cython.freelist(256)
cdef class PacketTrain:
    """The packets of a transfer in one SIP."""

    def __cinit__(self):
        self.links, self.stages = self.own_links, FIRST_STAGES

    def __init__(self, QueueTimes times not None):
        self.times = times

    def __dealloc__(self):
        if self.links != self.own_links:
            PyMem_Free(self.links)
        PyMem_Free(self.channels)

    cpdef long long at_link(
        self, int stage, long long head_ps, long long start_ps, long long tail_ps
    ) except -1:
        stage += 1
        if stage >= self.stages:
            self.reach(stage)
        return wait_behind(&self.links[stage], head_ps, start_ps, tail_ps)

    cdef int reach(self, int stage) except -1:
        """Make room for a stage."""
        cdef long long *links
        cdef int wanted = max(stage + 1, 2 * self.stages)
        if self.links == self.own_links:
            links = <long long *> resized(NULL, sizeof(self.own_links))
            memcpy(links, self.own_links, sizeof(self.own_links))
            self.links = links
        self.stages = grown(&self.links, self.stages, wanted)
        return 0

    cpdef long long at_router(
        self, int hop, long long packet, long long waited_ps
    ) except -1:
        cdef long long before
        hop += 1
        if hop >= self.stages:
            self.reach(hop)
        before, self.links[hop] = self.links[hop], packet
        return 0 if before == packet - 1 and packet > 1 else waited_ps

    cpdef int at_channels(
        self, IntArray needed, long long arrived_ps, long long start_ps, long long end_ps
    ) except -1:
        cdef long long own_ps = arrived_ps, waited_ps
        cdef Py_ssize_t index
        cdef int channel
        for index in range(needed.size):
            channel = needed.values[index] % MOST_CHANNELS
            if channel >= self.count:
                self.count = grown(&self.channels, self.count, channel + 1)
            own_ps = max(own_ps, self.channels[channel])
        waited_ps = max(start_ps - own_ps, 0)
        for index in range(needed.size):
            self.channels[needed.values[index] % MOST_CHANNELS] = end_ps - waited_ps
        return self.times.at_memory(waited_ps)

    cpdef int at_port(
        self, long long head_ps, long long start_ps, long long tail_ps
    ) except -1:
        cdef long long waited_ps = max(start_ps - max(head_ps, self.port_ps), 0)
        self.port_ps = tail_ps - waited_ps
        return self.times.at_memory(waited_ps)


cdef int grown(long long **values, int count, int wanted) except -1:
    """Make room for `wanted` values; those behind the first `count` are zero."""
    cdef int index
    values[0] = <long long *> resized(values[0], wanted * sizeof(long long))
    for index in range(count, wanted):
        values[0][index] = 0
    return wanted
