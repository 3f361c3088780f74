"""Packets from SIP to SIP in C: the inbox of a SIP, and what its UCIe ports do with a packet.

    fabric --> Crossings.take --> LinkEgress --> Inbox of the neighbour, or a message
               Crossings.come <-- Inbox       (a packet for another SIP is taken again)

See `sip_node.pdes.inbox` and `sip_node.chip.ucie_ports`. The inbox keeps its packets in a binary
heap by (time, source, seq), and inserts one event for each time.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc

from sip_node.compiled.approach cimport Lookout
from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.hops cimport Endpoint, Hops, in_c
from sip_node.compiled.link_egress cimport LinkEgress, LinkEnd
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet, new_packet
from sip_node.chip.fabric.packet_train cimport new_train, wait_at_link
from sip_node.compiled.run_block cimport RunBlock
from sip_node.pdes.sender cimport Sender
from sip_node.compiled.server cimport FifoServer, Service

cdef enum:
    # Before SimPy's URGENT (0): see `sip_node.pdes.engine`.
    ARRIVALS_FIRST = -1
    NORMAL = 1
    FIRST_CAPACITY = 16
    # `PORT` of `sip_node.chip.fabric.packet_train`.
    AT_SWITCH = -1


cdef inline bint precedes(Arrival *first, Arrival *second) noexcept nogil:
    if first.time_ps != second.time_ps:
        return first.time_ps < second.time_ps
    if first.source != second.source:
        return first.source < second.source
    return first.seq < second.seq


cdef class Inbox(LinkEnd):
    """The twin of `ReferenceInbox`; with `crossings`, the end of the links to their SIP."""

    def __init__(self, Calendar engine not None, receive):
        self.calendar, self.number = engine, engine.enlist(self)
        self.receive = receive
        self.packets, self.free_slots, self.due = [], [], set()

    @classmethod
    def __class_getitem__(cls, packet):
        return cls

    def __dealloc__(self):
        PyMem_Free(self.heap)

    def put(self, long long time_ps, long long source, long long seq, long long tail_ps, packet):
        """See `ReferenceInbox.put`."""
        self.insert(time_ps, source, seq, tail_ps, packet)

    cdef int land(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    ) except -1:
        """`put` from a link; a packet for another SIP has a bound from now on."""
        if self.crossings is not None and packet.transfer.sip != self.crossings.sip:
            self.crossings.bound(packet, head_ps)
        return self.insert(head_ps, source, seq, tail_ps, packet)

    cdef int insert(
        self, long long time_ps, long long source, long long seq, long long tail_ps, object packet
    ) except -1:
        cdef Arrival arrival
        cdef Event event
        cdef unsigned int child, parent
        assert time_ps > self.calendar.now_ps, (
            f"a packet for {time_ps} ps came at {self.calendar.now_ps} ps"
        )
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
        if time_ps not in self.due:
            self.due.add(time_ps)
            event.actor, event.step, event.context = self.number, 0, NULL
            event.tail_ps = event.nbytes = 0
            self.calendar.insert(time_ps, ARRIVALS_FIRST, event, None)
        return 0

    def grow(self):
        """Double the room for packets."""
        cdef unsigned int capacity = 2 * self.capacity if self.capacity else FIRST_CAPACITY
        cdef void *found = PyMem_Realloc(self.heap, capacity * sizeof(Arrival))
        if not found:
            raise MemoryError
        self.heap = <Arrival *> found
        self.packets.extend([None] * (capacity - self.capacity))
        self.free_slots.extend(range(self.capacity, capacity))
        self.capacity = capacity

    cdef Arrival pop(self) except *:
        """Remove the first packet from the heap; its slot still holds it."""
        cdef Arrival first = self.heap[0]
        cdef Arrival *last
        cdef unsigned int gap = 0, child = 1
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
        return first

    cdef int act(self, Event event, object subject) except -1:
        """Receive all packets of this time."""
        cdef Arrival arrival
        cdef long long now_ps = self.calendar.now_ps
        self.due.discard(now_ps)
        while self.size and self.heap[0].time_ps == now_ps:
            arrival = self.pop()
            packet = self.packets[arrival.slot]
            self.packets[arrival.slot] = None
            self.free_slots.append(arrival.slot)
            self.received += 1
            if self.crossings is not None:
                self.crossings.come(<Packet> packet, arrival.tail_ps, arrival.source)
            else:
                self.receive(packet, arrival.tail_ps, arrival.source)
        return 0


cdef class Crossings(Endpoint):
    """The first base of UCIe ports whose second base is `ReferenceUciePorts`.

    It replaces `accept`, `arrive` and `receive`.
    """

    def bind(self, Calendar engine not None, fabric, int io_noc, long long sip, send_bounds,
             list egress_to not None, switch_port, Inbox inbox not None, trains):
        """Take what the reference holds: the link to the next SIP by target, and its inbox."""
        self.calendar, self.number = engine, engine.enlist(self)
        self.fabric, self.hops = fabric, fabric if isinstance(fabric, Hops) else None
        self.io_noc, self.sip = io_noc, sip
        self.send_bounds, self.senders = send_bounds, send_bounds.in_flight
        self.egress_to, self.switch_port = egress_to, switch_port
        self.switch_server = switch_port if in_c(switch_port) else None
        self.inbox, self.trains = inbox, trains
        inbox.crossings = self

    def foresee(self):
        """See `ReferenceUciePorts.foresee`: what is known is in the lookout of the fabric."""
        cdef LinkEgress egress
        cdef dict ahead = {}
        egresses = [each for each in self.egress_to if each is not None]
        if self.hops is None or not all(in_c(each.port) for each in egresses):
            return None
        for egress in egresses:
            if egress.end is not None and egress.end.takes_early:
                ahead[egress.port] = egress.server.copied()
        for egress in egresses:
            # Egresses to a switch share a port, and all that pass it have to be foreseen.
            egress.ahead = ahead.get(egress.port)
        self.lookout = self.hops.lookout
        self.lookout.watch([
            None if egress is None or egress.ahead is None else egress
            for egress in self.egress_to
        ])
        return self.lookout

    def arrive(self, long long head_ps, long long source, long long seq, long long tail_ps,
               Packet packet not None):
        """See `ReferenceUciePorts.arrive`."""
        self.inbox.land(head_ps, source, seq, tail_ps, packet)

    cdef int land_run(self, long long source, FabricTransfer transfer, RunBlock *run) except -1:
        """`arrive_run` for C classes; without credits no packet breaks a rule."""
        cdef Py_ssize_t index, last = run.packets - 1
        for index in range(run.packets):
            self.inbox.land(
                run.heads_ps[index],
                source,
                run.seqs[index],
                run.heads_ps[index] + run.tails_ps[index],
                new_packet(
                    transfer, run.begins[index], run.sizes[index], run.ends and index == last
                ),
            )
        return 0

    def receive(self, Packet packet not None, long long tail_ps, long long source):
        """See `ReferenceUciePorts.receive`."""
        self.come(packet, tail_ps, source)

    cdef int take(self, Packet packet, long long tail_ps) except -1:
        """A packet for another SIP is at the IO NoC."""
        cdef Service foreseen
        cdef LinkEgress egress
        sip = packet.transfer.sip
        egress = <LinkEgress> self.egress_to[sip]
        if packet.approach is not None:
            self.lookout.cross(packet, &foreseen)
            return egress.pass_foreseen(packet, tail_ps, &foreseen)
        (<Sender> self.senders[sip]).entered(packet.entrance_ps)
        if egress.ahead is None:
            egress.pass_on(packet, tail_ps)
            return 0
        egress.foresee(packet, self.calendar.now_ps, tail_ps, &foreseen)
        return egress.pass_foreseen(packet, tail_ps, &foreseen)

    cdef int bound(self, Packet packet, long long entrance_ps) except -1:
        """From now on this LP has a bound for a packet that it forwards."""
        sip = packet.transfer.sip
        sender = self.senders.get(sip)
        if sender is None:
            self.send_bounds.departed(sip, entrance_ps)
        else:
            (<Sender> sender).departed(entrance_ps)
        return 0

    cdef int come(self, Packet packet, long long tail_ps, long long source) except -1:
        """The head of a packet is at our IO NoC, or at the port of the switch that leads here."""
        cdef Service service
        cdef Event event
        cdef long long now_ps = self.calendar.now_ps
        packet.entrance_ps, packet.came_from = now_ps, source
        if self.trains is not None:
            self.train(packet)
        if self.switch_port is None:
            return self.enter(packet, tail_ps)
        if self.switch_server is not None:
            self.switch_server.serve(now_ps, tail_ps, packet.size, &service)
        else:
            service.start_ps, service.tail_ps = self.switch_port.reserve(
                now_ps, tail_ps, packet.size
            )
        if packet.train is not None:
            self.note_switch(packet, now_ps, service)
        event.actor, event.step, event.context = self.number, 0, NULL
        event.tail_ps, event.nbytes = service.tail_ps, packet.size
        return self.calendar.insert(service.start_ps, NORMAL, event, packet)

    cdef int train(self, Packet packet) except -1:
        """See `ReferenceUciePorts._enter_train`."""
        train = self.trains.get(packet.transfer)
        if train is None:
            train = new_train(None)
            if not packet.last:
                self.trains[packet.transfer] = train
        elif packet.last:
            del self.trains[packet.transfer]
        packet.train, packet.link_ps, packet.longest_ps = train, 0, 0
        return 0

    cdef int note_switch(self, Packet packet, long long head_ps, Service service) except -1:
        cdef long long waited_ps = wait_at_link(
            packet.train, AT_SWITCH, head_ps, service.start_ps, service.tail_ps
        )
        return packet.queued(waited_ps, self.switch_port.name) if waited_ps else 0

    cdef int act(self, Event event, object subject) except -1:
        """A packet has passed the port of the switch."""
        return self.enter(<Packet> subject, event.tail_ps)

    cdef int enter(self, Packet packet, long long tail_ps) except -1:
        if packet.transfer.sip != self.sip:
            return self.take(packet, tail_ps)
        if self.hops is not None:
            return self.hops.depart(packet, self.io_noc, tail_ps)
        self.fabric.send(packet, self.io_noc, tail_ps)
        return 0
