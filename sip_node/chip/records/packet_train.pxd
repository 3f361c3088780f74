"""The queueing of packets behind packets of other transfers, in C: see packet_train.pyx."""

from sip_node.kernel.containers.int_array cimport IntArray

cdef enum:
    FIRST_STAGES = 12


cdef class QueueTimes:
    cdef public long long link_ps
    cdef public long long memory_ps
    cdef public str link

    cpdef int at_links(self, long long link_ps, str link) except -1
    cpdef int at_memory(self, long long memory_ps) except -1
    cpdef int add(self, QueueTimes other) except -1


cdef class PacketTrain:
    cdef readonly QueueTimes times
    # By stage of the route, from the port of a switch on; of most routes in the train itself.
    cdef long long *links
    cdef long long[FIRST_STAGES] own_links
    cdef int stages
    # By channel of a memory.
    cdef long long *channels
    cdef int count
    cdef long long port_ps

    cdef int reach(self, int stage) except -1
    cpdef long long at_link(
        self, int stage, long long head_ps, long long start_ps, long long tail_ps
    ) except -1
    cpdef long long at_router(
        self, int hop, long long packet, long long waited_ps
    ) except -1
    cpdef int at_channels(
        self, IntArray needed, long long arrived_ps, long long start_ps, long long end_ps
    ) except -1
    cpdef int at_port(
        self, long long head_ps, long long start_ps, long long tail_ps
    ) except -1


cdef inline long long wait_behind(
    long long *own_end_ps, long long head_ps, long long start_ps, long long tail_ps
) noexcept:
    """The time for which a packet has queued behind others; sets the own end of its train there."""
    cdef long long own_ps = max(own_end_ps[0], head_ps)
    cdef long long waited_ps = max(start_ps - own_ps, 0)
    own_end_ps[0] = tail_ps - waited_ps
    return waited_ps
