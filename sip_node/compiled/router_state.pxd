"""The state of clocked routers in C, and what follows from it.

The structs are the classes of `virtual_channels`, `router` and `injection`, field by field. All of
them belong to one `Arena`, and live as long as it does.
"""

from sip_node.compiled.arena cimport Cycles, oldest, pop
from sip_node.compiled.int128 cimport int128

cdef enum:
    # Instead of a cycle: not before a flit, a credit or a channel arrives.
    DORMANT = -1
    # Differences of two indices modulo this are cyclic, as in the reference.
    TURN_MASK = (1 << 30) - 1


cdef struct Arbiter:
    # A router, or the source of a link: then `port` is its output, and NULL for a router.
    OutputPort *port
    # The channels with a request in the present cycle, and the number of those that there may be.
    Requester **requests
    int count
    int channels
    # The stages of a router.
    int route
    int allocate
    int leave
    # The inputs of a router, and the number of its outputs.
    InputPort *inputs
    int outputs
    # The node of a source that is notified when a packet has left; -1 for all others.
    int notified


cdef struct Requester:
    # The common part of `InputVc` and `Injection`, which begin with it. `next` is the following one
    # in the only list that it can be in.
    Arbiter *arbiter
    Requester *next


cdef struct OutputPort:
    long long index
    long long flit_cycles
    long long delay
    long long free_at
    long long pointer
    long long flits
    long long nbytes
    long long queued_cycles
    # In a run with records: the packets, the `TimeBins` and the name that its part holds.
    long long packets
    void *bins
    void *name
    # Its number at its router.
    int number
    # The channel that requests it in the present cycle, the first in turn so far.
    InputVc *nominee


cdef struct InputPort:
    long long index
    long long pointer
    # Turns by the number of an output at the router.
    long long *next_vc
    long long next_head
    # The channel that requests the switch in the present cycle, the first in turn so far.
    InputVc *nominee
    InputPort *next


cdef struct OutputVc:
    InputVc *target
    long long free_at
    long long pointer
    # The head that requests it in the present cycle, the first in turn so far.
    InputVc *nominee
    Requester *waiting
    # Credits that no flit has used yet, which come before those that have returned.
    long long fresh
    Cycles credits


cdef struct VirtualNetwork:
    OutputPort *port
    long long index
    OutputVc *vcs
    int count
    Requester *waiting
    Requester *last_waiting
    bint is_limited
    long long space
    long long capacity
    InputVc *short_of_space
    InputVc *last_short


cdef struct Passage:
    # A packet in a buffer, and the output that it takes behind it.
    Worm *worm
    VirtualNetwork **output
    Passage *next


cdef struct InputVc:
    Requester requester
    InputPort *port
    long long index
    int credit_cycles
    bint is_asleep
    OutputVc *feeder
    Cycles ready
    Passage *first
    Passage *last
    long long left
    VirtualNetwork *network
    OutputVc *vc
    VirtualNetwork *last_network
    int last_vc
    bint is_short_of_space
    InputVc *next_short


cdef struct Injection:
    Requester requester
    VirtualNetwork *network
    Worm *first
    Worm *last
    long long left
    OutputVc *vc
    int last_vc


cdef struct Worm:
    # `packet` is held by reference, `path` is borrowed from the fabric.
    void *packet
    void *path
    VirtualNetwork **networks
    long long nbytes
    long long flits
    long long head_ps
    long long tail_ps
    long long number
    Worm *next


cdef struct Agendum:
    # The channels with a request in `cycle`, and the next one of the same place in the agenda.
    long long cycle
    Requester *first
    Requester *last
    Agendum *next


cdef inline long long turn(long long index, long long pointer) noexcept nogil:
    """How long after `pointer` an index has its turn."""
    return (index - pointer) & TURN_MASK


cdef inline bint has_credit(OutputVc *vc) noexcept nogil:
    return vc.fresh or vc.credits.count


cdef inline long long first_credit(OutputVc *vc) noexcept nogil:
    """The cycle from which its first credit is usable."""
    return 0 if vc.fresh else oldest(&vc.credits)


cdef inline void take_credit(OutputVc *vc) noexcept nogil:
    if vc.fresh:
        vc.fresh -= 1
    else:
        pop(&vc.credits)


cdef inline bint is_before(InputVc *channel, InputVc *other) noexcept nogil:
    """Whether the place of a channel, among those of all inputs, is before that of another one."""
    if channel.port.index == other.port.index:
        return channel.index < other.index
    return channel.port.index < other.port.index


cdef inline void sort_by_place(InputVc **heads, int count) noexcept nogil:
    """Sort heads by their place."""
    cdef InputVc *channel
    cdef int index, place
    for index in range(1, count):
        channel, place = heads[index], index
        while place and is_before(channel, heads[place - 1]):
            heads[place] = heads[place - 1]
            place -= 1
        heads[place] = channel


cdef inline long long turn_of_head(OutputVc *vc, InputVc *channel) noexcept nogil:
    """How long after the input that got `vc` last, and after the last head of its input."""
    return turn(channel.port.index, vc.pointer) << 30 | turn(
        channel.index, channel.port.next_head
    )


cdef inline long long turn_at_input(InputVc *channel) noexcept nogil:
    """How long after the output that its input served last, and after the channel for it."""
    cdef OutputPort *port = channel.network.port
    return turn(port.index, channel.port.pointer) << 30 | turn(
        channel.index, channel.port.next_vc[port.number]
    )


cdef inline long long turn_at_output(InputVc *channel) noexcept nogil:
    """How long after the input that its output served last."""
    return turn(channel.port.index, channel.network.port.pointer)


cdef inline void wait_for_channel(VirtualNetwork *network, InputVc *channel) noexcept nogil:
    """Let a head wait until a channel of its network is free."""
    channel.requester.next = NULL
    if network.waiting:
        network.last_waiting.next = &channel.requester
    else:
        network.waiting = &channel.requester
    network.last_waiting = &channel.requester


cdef inline long long earliest(InputVc *channel, long long cycle) noexcept nogil:
    """The first cycle from `cycle` on in which it can request the switch, or `DORMANT`."""
    cdef OutputVc *vc = channel.vc
    if not channel.ready.count:
        channel.is_asleep = True
        return DORMANT
    cycle = max(cycle, oldest(&channel.ready))
    if vc.target:
        if not has_credit(vc):
            vc.waiting = &channel.requester
            return DORMANT
        cycle = max(cycle, first_credit(vc))
    return max(cycle, channel.network.port.free_at)


cdef inline long long earliest_of_source(
    Injection *injection, long long cycle, long long period_ps
) noexcept nogil:
    """The first cycle from `cycle` on in which a source can request its link, or `DORMANT`."""
    cdef VirtualNetwork *network = injection.network
    cdef OutputVc *vcs = network.vcs
    cdef Worm *worm = injection.first
    cdef long long usable = -1, available, begun, span_ps
    cdef int index, count = network.count
    if injection.vc:
        vcs, count = injection.vc, 1
    for index in range(count):
        if has_credit(&vcs[index]) and (usable < 0 or first_credit(&vcs[index]) < usable):
            usable = first_credit(&vcs[index])
    for index in range(count):
        vcs[index].waiting = &injection.requester if usable < 0 else NULL
    if usable < 0:
        return DORMANT
    cycle = max(cycle, usable)
    if worm.tail_ps != worm.head_ps:
        # Flits enter no earlier than they are complete at the source.
        begun = worm.flits - injection.left + 1
        span_ps = worm.tail_ps - worm.head_ps
        available = worm.head_ps + <long long> (
            (<int128> span_ps * begun + worm.flits - 1) // worm.flits
        )
        cycle = max(cycle, cycle_of(available, period_ps))
    return max(cycle, network.port.free_at)


cdef inline bint is_power_of_two(long long number) noexcept nogil:
    return not number & (number - 1)


cdef inline long long cycle_of(long long time_ps, long long period_ps) noexcept nogil:
    """The first cycle that begins at `time_ps` or later."""
    return (time_ps + period_ps - 1) // period_ps
