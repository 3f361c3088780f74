"""The queueing of packets behind packets of other transfers, in C: see packet_train.pyx."""


cdef class QueueTimes:
    cdef public long long link_ps
    cdef public long long memory_ps
    cdef public str link

    cdef int note_links(self, long long link_ps, str link) except -1
    cdef int note_memory(self, long long memory_ps) except -1
    cdef int unite(self, QueueTimes other) except -1


cdef class PacketTrain:
    cdef readonly QueueTimes times
    # By stage of the route, from the port of a switch on; and by channel of a memory.
    cdef long long *links
    cdef int stages
    cdef long long *channels
    cdef int count
    cdef long long port_ps

    cdef int reach(self, int stage) except -1
    cdef long long wait_at_router(
        self, int hop, long long packet, long long waited_ps
    ) except -1
    cdef int wait_at_channels(
        self, unsigned long long needs, long long arrived_ps, long long start_ps, long long end_ps
    ) except -1
    cdef int wait_at_port(
        self, long long head_ps, long long start_ps, long long tail_ps
    ) except -1


cdef PacketTrain new_train(QueueTimes times)


cdef inline long long wait_at_link(
    PacketTrain train, int stage, long long head_ps, long long start_ps, long long tail_ps
) except -1:
    """`ReferencePacketTrain.at_link` for C classes. Inline: each packet calls it at each link."""
    cdef long long own_ps, waited_ps
    stage += 1
    if stage >= train.stages:
        train.reach(stage)
    own_ps = train.links[stage]
    if head_ps > own_ps:
        own_ps = head_ps
    waited_ps = start_ps - own_ps if start_ps > own_ps else 0
    train.links[stage] = tail_ps - waited_ps
    return waited_ps
