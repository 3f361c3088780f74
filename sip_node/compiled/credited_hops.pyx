"""The passage of packets through clocked routers, in C: see `ReferenceCreditedFabric`.

What a packet contains is read once, when it departs. A path is found by the fields on which it
depends. The links with calendars before and behind the routers belong to the host; they are served
by the `reserve` of their class.
"""

cimport cython
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject

from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.clocked_routers cimport ClockedRouters
from sip_node.compiled.cycle_agenda cimport TICK
from sip_node.kernel.component cimport Endpoint
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet, train_of
from sip_node.compiled.router_parts cimport NetworkPart, SourcePart
from sip_node.compiled.router_state cimport (
    Injection,
    InputVc,
    VirtualNetwork,
    Worm,
    cycle_of,
)
from sip_node.pdes.sender cimport Sender

cdef enum:
    NORMAL = 1
    # Event.step, beside TICK; those of calendars have the index of a stage in the upper bits.
    ARRIVED = 1
    LEFT = 2
    BEFORE = 3
    AFTER = 4
    STEPS = 8
    BLOCK = 64


# As of an arena, the collector would take `blocks` away, which has numbers only.
@cython.no_gc
cdef class WormPool:
    """The packets in the routers, each with a reference to its object."""

    def __cinit__(self):
        self.blocks = []

    def __dealloc__(self):
        cdef Worm *block
        cdef int index
        for address in self.blocks:
            block = <Worm *> <size_t> address
            for index in range(BLOCK):
                Py_XDECREF(<PyObject *> block[index].packet)
            PyMem_Free(block)

    cdef Worm *new(self, Packet packet) except NULL:
        cdef Worm *block
        cdef Worm *worm
        cdef int index
        if not self.free:
            block = <Worm *> PyMem_Calloc(BLOCK, sizeof(Worm))
            if not block:
                raise MemoryError
            self.blocks.append(<size_t> block)
            for index in range(BLOCK):
                block[index].next, self.free = self.free, &block[index]
        worm = self.free
        self.free = worm.next
        Py_INCREF(packet)
        worm.packet = <void *> packet
        return worm

    cdef Packet release(self, Worm *worm):
        """The packet of a worm, which is free from now on."""
        packet = <Packet> worm.packet
        Py_XDECREF(<PyObject *> worm.packet)
        worm.packet = NULL
        worm.next, self.free = self.free, worm
        return packet


cdef class PacketPath:
    """The twin of `worm.PacketPath`; `held` are chained by `next`."""

    def __cinit__(self, plan, SourcePart source, int notified):
        cdef int index
        self.target, self.latency_ps, self.before, self.parts, self.after = plan
        self.source, self.notified, self.early = source, notified, {}
        self.networks = <VirtualNetwork **> PyMem_Calloc(
            max(1, len(self.parts)), sizeof(VirtualNetwork *)
        )
        if not self.networks:
            raise MemoryError
        for index, part in enumerate(self.parts):
            self.ejecting = <NetworkPart?> part
            self.networks[index] = self.ejecting.network
        if source is not None and notified >= 0:
            source.injection.requester.arbiter.notified = notified

    def __dealloc__(self):
        PyMem_Free(self.networks)


cdef class CreditedHops(ClockedRouters):
    """The base of a fabric with credits: it sends and moves the packets."""

    def bind(self, Calendar engine not None, clock):
        """The engine, and the clock of the routers; call it before parts are constructed."""
        self.calendar, self.worms, self.paths = engine, WormPool(), {}
        self.number = engine.enlist(self)
        self.period_ps, self.flit_bytes = clock.period_ps, clock.flit_bytes

    def serve(
        self,
        long long sip,
        find_path,
        dict endpoints,
        dict servers,
        dict left,
        dict bytes_waiting,
        send_bounds,
        bint restores_order,
    ):
        """What the fabric of SIP `sip` has beside the routers.

        `find_path(transfer, origin)` returns a `PacketPath`. The dicts are by node or link:
        `endpoints`, `servers` of links with calendars, callbacks when a packet has `left` a node,
        the bytes that wait there.
        """
        self.sip, self.find_path = sip, find_path
        self.send_bounds, self.senders = send_bounds, send_bounds.in_flight
        self.endpoints, self.servers, self.left = endpoints, servers, left
        self.bytes_waiting, self.restores_order_here = bytes_waiting, restores_order

    def send(self, Packet packet not None, int origin, long long tail_ps):
        """See `ReferenceCreditedFabric.send`."""
        self.depart(packet, origin, tail_ps)

    cdef int depart(self, Packet packet, int origin, long long tail_ps) except -1:
        """Send a packet from node `origin` now: `send` for C classes."""
        cdef PacketPath path
        cdef Event event
        cdef FabricTransfer transfer = packet.transfer
        self.sent += 1
        if self.records and packet.train is None:
            packet.train = train_of(transfer)
        key = (origin, transfer.node, transfer.sip, transfer.source_sip, transfer.kind)
        found = self.paths.get(key)
        if found is None:
            found = self.paths[key] = self.find_path(transfer, origin)
        path = <PacketPath> found
        event.nbytes, event.tail_ps = packet.size, tail_ps
        if path.notified >= 0:
            self.bytes_waiting[path.notified] += event.nbytes
        if transfer.sip != self.sip:
            packet.entrance_ps = self.calendar.now_ps + path.latency_ps
            sender = self.senders.get(transfer.sip)
            if sender is None:
                self.send_bounds.departed(transfer.sip, packet.entrance_ps)
            else:
                (<Sender> sender).departed(packet.entrance_ps)
        event.actor, event.step, event.context = self.number, BEFORE, <void *> path
        return self.enter(path, event, packet)

    def release(self, Packet packet not None):
        """See `ReferenceCreditedFabric.release`."""
        cdef NetworkPart part = <NetworkPart?> packet.space
        packet.space = None
        part.network.space += self.flits(packet.size)
        # The credits take a cycle back to the router.
        self.retry(part.network, cycle_of(self.calendar.now_ps, self.period_ps) + 1)

    cdef int act(self, Event event, object subject) except -1:
        cdef int step = event.step % STEPS
        if step == TICK:
            return self.execute(event.tail_ps)
        if step == ARRIVED:
            return self.arrived(<Worm *> event.context)
        if step == BEFORE:
            return self.enter(<PacketPath> event.context, event, <Packet> subject)
        if step == AFTER:
            return self.leave(<PacketPath> event.context, event, <Packet> subject)
        self.left[event.nbytes](subject)
        return 0

    cdef long long flits(self, long long nbytes) noexcept:
        return max(1, (nbytes + self.flit_bytes - 1) // self.flit_bytes)

    cdef int enter(self, PacketPath path, Event event, Packet packet) except -1:
        """Pass the links with calendars, then wait at the source of the first clocked link."""
        cdef Worm *worm
        cdef int index = event.step // STEPS
        if index < len(path.before):
            return self.reserve(path.before[index], event, packet)
        if path.source is None:
            return self.deliver(path, packet, event.tail_ps)
        worm = self.worms.new(packet)
        worm.path, worm.networks = <void *> path, path.networks
        worm.nbytes, worm.flits = event.nbytes, self.flits(event.nbytes)
        worm.head_ps = self.calendar.now_ps
        worm.tail_ps = max(worm.head_ps, event.tail_ps)
        worm.number = path.sent
        path.sent += 1
        return self.put(path.source.injection, worm)

    cdef int leave(self, PacketPath path, Event event, Packet packet) except -1:
        """Pass the links with calendars behind the routers."""
        cdef int index = event.step // STEPS
        if index < len(path.after):
            return self.reserve(path.after[index], event, packet)
        return self.deliver(path, packet, event.tail_ps)

    cdef int reserve(self, object stage, Event event, Packet packet) except -1:
        """Pass a link with a calendar; the event of the next one is when the head is there."""
        cdef long long now_ps = self.calendar.now_ps, pre_ps = stage.pre_ps, post_ps = stage.post_ps
        cdef long long start_ps, tail_ps
        start_ps, tail_ps = self.servers[stage.link].reserve(
            now_ps + pre_ps, event.tail_ps + pre_ps, event.nbytes
        )
        event.step += STEPS
        event.tail_ps = tail_ps + post_ps
        return self.calendar.insert(start_ps + post_ps, NORMAL, event, packet)

    cdef int has_left(self, int node, Worm *worm, long long now) except -1:
        cdef Event event
        self.bytes_waiting[node] -= worm.nbytes
        event.actor, event.step, event.nbytes = self.number, LEFT, node
        return self.calendar.insert(
            (now + 1) * self.period_ps, NORMAL, event, <object> worm.packet
        )

    cdef int admitted(self, InputVc *channel, long long now) except -1:
        """See `VirtualNetwork.admits`."""
        cdef VirtualNetwork *network = channel.network
        cdef Worm *worm = channel.first.worm
        cdef PacketPath path = <PacketPath> worm.path
        if worm.number != path.admitted:
            path.early[worm.number] = worm.flits
            return True
        if network.space < min(worm.flits, network.capacity) or (
            network.short_of_space and network.short_of_space != channel
        ):
            if not channel.is_short_of_space:
                channel.is_short_of_space, channel.next_short = True, NULL
                if network.short_of_space:
                    network.last_short.next_short = channel
                else:
                    network.short_of_space = channel
                network.last_short = channel
            return False
        network.space -= worm.flits
        path.admitted += 1
        while path.admitted in path.early:
            network.space -= <long long> path.early.pop(path.admitted)
            path.admitted += 1
        if network.short_of_space:
            channel.is_short_of_space = False
            network.short_of_space = channel.next_short
            self.retry(network, now + 1)
        return True

    cdef int ejected(self, Worm *worm, VirtualNetwork *network, long long cycle) except -1:
        cdef Event event
        if network.is_limited:
            (<Packet> worm.packet).space = (<PacketPath> worm.path).ejecting
        event.actor, event.step, event.context = self.number, ARRIVED, <void *> worm
        return self.calendar.insert((cycle + 1) * self.period_ps, NORMAL, event, None)

    cdef int arrived(self, Worm *worm) except -1:
        """A packet is complete at its target, whose interface delivers packets in order."""
        cdef PacketPath path = <PacketPath> worm.path
        cdef Worm **place
        cdef Event event
        if self.restores_order_here and worm.number != path.due:
            worm.next, path.held = path.held, worm
            return 0
        event.actor, event.context = self.number, <void *> path
        while worm:
            path.due += 1
            event.step, event.tail_ps, event.nbytes = AFTER, self.calendar.now_ps, worm.nbytes
            self.leave(path, event, self.worms.release(worm))
            place = &path.held
            while place[0] and place[0].number != path.due:
                place = &place[0].next
            worm = place[0]
            if worm:
                place[0] = worm.next
        return 0

    cdef int deliver(self, PacketPath path, Packet packet, long long tail_ps) except -1:
        self.delivered += 1
        if path.endpoint is None:
            path.endpoint = self.endpoints[path.target]
        if isinstance(path.endpoint, Endpoint):
            (<Endpoint> path.endpoint).accept(packet, tail_ps)
            return 0
        path.endpoint.accept(packet, tail_ps)
        return 0
