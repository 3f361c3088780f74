"""Constructs the parts of clocked routers in C, and reads their state; see `RouterElements`.

A part is a handle: Python constructs paths of parts, reads the counters of links, and diagnoses
packets that stand still. Every part keeps the memory of all parts.
"""

from sip_node.compiled.arena cimport Arena
from sip_node.compiled.clocked_routers cimport ClockedRouters
from sip_node.compiled.router_state cimport (
    Arbiter,
    Injection,
    InputPort,
    InputVc,
    OutputPort,
    OutputVc,
    Requester,
    VirtualNetwork,
    Worm,
    is_power_of_two,
)
from sip_node.chip.time_bins cimport TimeBins


cdef class RouterPart:
    """A router."""


cdef class LinkPart:
    """An output and the link behind it, with the counters of a link: `OutputPort`."""

    def serialisation_ps(self, long long nbytes):
        """The time that the flits of one packet of `nbytes` take."""
        cdef long long flits = (nbytes + self.flit_bytes - 1) // self.flit_bytes
        return flits * self.port.flit_cycles * self.period_ps

    @property
    def bins(self):
        """Its load over time, in a run with records."""
        return self.load

    @bins.setter
    def bins(self, TimeBins bins not None):
        self.load, self.port.bins = bins, <void *> bins

    @property
    def nbytes(self):
        """Bytes of the packets that it has carried."""
        return self.port.nbytes

    @property
    def busy_ps(self):
        """The time for which the link has carried flits."""
        return self.port.flits * self.port.flit_cycles * self.period_ps

    @property
    def queued_ps(self):
        """The time for which heads of packets have waited for it."""
        return self.port.queued_cycles * self.period_ps


cdef class NetworkPart:
    """The channels of one message class and layer at an output: `VirtualNetwork`."""

    def limit(self, long long flits):
        """The receiver has room for `flits`; a longer packet enters when all of it is free."""
        if not self.network.is_limited:
            self.network.is_limited = True
            self.network.space = self.network.capacity = flits


cdef class SourcePart:
    """The queue of a source in front of one of its virtual networks: `Injection`."""


cdef class RouterParts:
    """The twin of `RouterElements`, for the routers of `routers`."""

    def __init__(self, ClockedRouters routers not None):
        self.routers, self.networks, self.sources_of, self.injectors = routers, [], {}, {}

    def router(self, pipeline):
        """A router."""
        cdef RouterPart part = RouterPart()
        part.arena, part.pipeline = self.routers.arena, pipeline
        part.arbiter = <Arbiter *> part.arena.take(1, sizeof(Arbiter))
        part.arbiter.route, part.arbiter.allocate = pipeline.route, pipeline.allocate
        part.arbiter.leave, part.arbiter.notified = pipeline.leave, -1
        return part

    def port(self, str name, long long index, RouterPart source, int flit_cycles, int delay):
        """An output of `source`, or of a component, and the link behind it."""
        cdef LinkPart part = LinkPart()
        cdef OutputPort *port
        part.arena, part.name, part.index = self.routers.arena, name, index
        part.flit_bytes, part.period_ps = self.routers.flit_bytes, self.routers.period_ps
        part.port = port = <OutputPort *> part.arena.take(1, sizeof(OutputPort))
        port.index, port.flit_cycles, port.delay = index, flit_cycles, delay
        port.name = <void *> part.name
        if source is not None:
            part.router = source.arbiter
            port.number = source.arbiter.outputs
            source.arbiter.outputs += 1
            add_turns(part.arena, source.arbiter.inputs, source.arbiter.outputs)
        return part

    def network(
        self,
        LinkPart port not None,
        long long index,
        int vcs,
        RouterPart target,
        int depth,
        int wire,
    ):
        """A virtual network of `port` with `vcs` channels; see `RouterElements.network`."""
        cdef NetworkPart part = NetworkPart()
        cdef VirtualNetwork *network
        part.arena, part.port, part.index = self.routers.arena, port, index
        part.network = network = <VirtualNetwork *> part.arena.take(1, sizeof(VirtualNetwork))
        network.port, network.index, network.count = port.port, index, vcs
        network.vcs = <OutputVc *> part.arena.take(vcs, sizeof(OutputVc))
        if target is not None:
            self.connect(part, target, depth, wire)
        self.networks.append(part)
        return part

    def injection(self, NetworkPart network not None):
        """The queue of a source in front of one of its virtual networks."""
        cdef SourcePart part
        cdef Arbiter *source
        found = self.sources_of.get(network)
        if found is not None:
            return found
        part = SourcePart()
        part.arena, part.network = self.routers.arena, network
        if network.port in self.injectors:
            source = (<SourcePart> self.injectors[network.port]).injection.requester.arbiter
        else:
            self.injectors[network.port] = part
            source = <Arbiter *> part.arena.take(1, sizeof(Arbiter))
            source.port, source.notified = network.port.port, -1
        part.injection = <Injection *> part.arena.take(1, sizeof(Injection))
        part.injection.requester.arbiter = source
        part.injection.network, part.injection.last_vc = network.network, -1
        self.routers.make_room(source)
        self.sources_of[network] = part
        return part

    def channels(self):
        """The fields of a `ChannelState` for every virtual channel."""
        cdef NetworkPart part
        cdef InputVc *buffer
        cdef int number
        names = {}
        for part in self.networks:
            for number in range(part.network.count):
                names[<size_t> &part.network.vcs[number]] = (part.port.index, part.index, number)
        for part in self.networks:
            for number in range(part.network.count):
                packet, held, needed = None, None, ()
                buffer = part.network.vcs[number].target
                if buffer and buffer.first:
                    packet = <object> buffer.first.worm.packet
                    held = names[<size_t> buffer.vc] if buffer.vc else None
                    needed = keys(buffer.network)
                key = part.port.index, part.index, number
                yield key, part.port.name, not buffer, packet, held, needed

    def sources(self):
        """The fields of a `SourceState` for every queue of a source."""
        cdef SourcePart part
        cdef Worm *worm
        for part in self.sources_of.values():
            packets, worm = [], part.injection.first
            while worm:
                packets.append(<object> worm.packet)
                worm = worm.next
            yield tuple(packets), keys(part.injection.network)

    cdef int connect(self, NetworkPart part, RouterPart target, int depth, int wire) except -1:
        """Construct the buffers at the end of the channels of a network."""
        cdef Arbiter *router = target.arbiter
        cdef VirtualNetwork *network = part.network
        cdef InputVc *buffer
        cdef int number
        if not part.port.entrance:
            part.port.entrance = self.new_entrance(router, part.port.index)
        for number in range(network.count):
            buffer = <InputVc *> part.arena.take(1, sizeof(InputVc))
            buffer.requester.arbiter, buffer.port = router, part.port.entrance
            buffer.index = network.index * network.count + number
            buffer.credit_cycles = router.leave + wire
            buffer.feeder = &network.vcs[number]
            buffer.feeder.target, buffer.feeder.fresh = buffer, depth
            self.routers.make_room(router)
        return 0

    cdef InputPort *new_entrance(self, Arbiter *router, long long index) except NULL:
        cdef Arena arena = self.routers.arena
        cdef InputPort *entrance = <InputPort *> arena.take(1, sizeof(InputPort))
        entrance.index = index
        entrance.next_vc = <long long *> arena.take(room(router.outputs), sizeof(long long))
        entrance.next, router.inputs = router.inputs, entrance
        return entrance


cdef tuple keys(VirtualNetwork *network):
    """The keys of the channels of a network."""
    return tuple([(network.port.index, network.index, vc) for vc in range(network.count)])


cdef size_t room(int count) noexcept:
    """The least power of two that is more than `count`."""
    cdef size_t found = 1
    while found <= <size_t> count:
        found *= 2
    return found


cdef int add_turns(Arena arena, InputPort *entrance, int count) except -1:
    """Room at all inputs of a router for the turns of `count` outputs."""
    cdef long long *turns
    cdef int index
    if not is_power_of_two(count):
        return 0
    while entrance:
        turns = <long long *> arena.take(room(count), sizeof(long long))
        for index in range(count - 1):
            turns[index] = entrance.next_vc[index]
        entrance.next_vc = turns
        entrance = entrance.next
    return 0
