"""The clocked routers of one SIP in C: see clocked_routers.pyx."""

from sip_node.compiled.cycle_agenda cimport CycleAgenda
from sip_node.compiled.router_state cimport (
    Arbiter,
    Injection,
    InputPort,
    InputVc,
    OutputPort,
    OutputVc,
    Passage,
    Requester,
    VirtualNetwork,
    Worm,
)


cdef class ClockedRouters(CycleAgenda):
    cdef long long flit_bytes
    cdef Passage *free_passages
    # Of one cycle and one router; with room for `channels` at least.
    cdef InputVc **heads
    cdef OutputVc **requested
    cdef InputPort **inputs
    cdef InputVc **lost
    cdef InputVc **winners
    cdef OutputPort **ports

    # What a subclass does with packets.
    cdef int ejected(self, Worm *worm, VirtualNetwork *network, long long cycle) except -1
    cdef int has_left(self, int node, Worm *worm, long long now) except -1
    cdef int admitted(self, InputVc *channel, long long now) except -1

    cdef int arbitrate(self, Arbiter *router, long long now) except -1
    cdef int give_channels(
        self, int heads, InputVc **requests, int count, long long now
    ) except -1
    cdef OutputVc *wanted(self, InputVc *channel, long long now) noexcept
    cdef int give(self, OutputVc *vc, InputVc *channel, long long now) except -1
    cdef int win(self, InputVc **requests, int count, long long now) except -1
    cdef int traverse(self, InputVc *channel, long long now) except -1
    cdef int retry(self, VirtualNetwork *network, long long cycle) except -1
    cdef int head(
        self, InputVc *channel, Worm *worm, VirtualNetwork **output, long long cycle
    ) except -1
    cdef int body(self, InputVc *channel, long long cycle) except -1
    cdef int begin(self, InputVc *channel, long long cycle) except -1
    cdef int wake(self, Requester *channel, long long cycle) except -1
    cdef int taken(self, InputVc *channel, long long now) except -1
    cdef int put(self, Injection *injection, Worm *worm) except -1
    cdef int inject(self, Arbiter *source, long long now) except -1
    cdef int send_flit(self, Injection *injection, long long now) except -1
