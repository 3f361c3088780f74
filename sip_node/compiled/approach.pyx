"""What is certain about packets that leave a SIP, in C.

A packet for another SIP passes one last link of the fabric, then the IO NoC and a UCIe port. From
the event in which it reserves that link, its time at the IO NoC is known:

    router --reserves--> last link --(queue, bytes, 18 ns)--> IO NoC --> UCIe port --> next SIP
                         |<---------- known from here ------>|

- *Gate.* A link is a FIFO. A packet that has not reserved it comes when it is free again, or later.
  Where kernels send faster than it carries, that is microseconds ahead.
- *Foreseen.* Before the least gate of all that may still come, the packets at a UCIe port are
  known, and so is their service there. They enter their messages before the events in which they
  cross, and these events check what was foreseen.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc

from runtime.core.errors import InvariantError
from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.link_egress cimport LinkEgress
from sip_node.pdes.sender cimport Sender
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.service cimport Service, serve_into
from sip_node.compiled.times cimport NEVER_PS, later_ps

cdef enum:
    FIRST_CAPACITY = 256


cdef class Approach:
    """One last link, with the delays before and after it, and the packets that have reserved it."""

    def __dealloc__(self):
        PyMem_Free(self.coming)

    def earliest_ps(self, long long base_ps):
        """No packet that has not reserved the link is at the IO NoC earlier.

        That holds if no event is executed before `base_ps`.
        """
        return self.gate_ps(base_ps)

    cdef long long gate_ps(self, long long base_ps) noexcept:
        return later_ps(max(later_ps(base_ps, self.pre_ps), self.server.free_ps), self.post_ps)

    cdef int depart(self, Packet packet) except -1:
        """A packet for another SIP is on its way to the link."""
        sip = packet.transfer.sip
        sender = self.senders.get(sip)
        if sender is None:
            sender = self.senders[sip] = Sender(NEVER_PS)
        packet.approach = self
        return (<Sender> sender).departed(packet.entrance_ps)

    cdef int reserve(self, Packet packet, long long head_ps, long long tail_ps) except -1:
        """That packet has reserved the link: its head is at the IO NoC at `head_ps`."""
        cdef Coming *coming
        (<Sender> self.senders[packet.transfer.sip]).entered(packet.entrance_ps)
        if self.size == self.capacity:
            self.grow()
        coming = &self.coming[self.size]
        coming.head_ps, coming.tail_ps = head_ps, tail_ps
        coming.order = self.lookout.orders
        self.lookout.orders += 1
        self.size += 1
        self.packets.append(packet)
        return 0

    cdef int grow(self) except -1:
        """Forget the packets that have crossed, or double the room."""
        cdef Py_ssize_t index, gone = self.first
        cdef void *found
        if gone * 2 < self.capacity or not gone:
            self.capacity = 2 * self.capacity + FIRST_CAPACITY
            found = PyMem_Realloc(self.coming, self.capacity * sizeof(Coming))
            if not found:
                raise MemoryError
            self.coming = <Coming *> found
            return 0
        for index in range(gone, self.size):
            self.coming[index - gone] = self.coming[index]
        del self.packets[:gone]
        self.first, self.next, self.size = 0, self.next - gone, self.size - gone
        return 0


cdef class Lookout:
    """The approaches of one SIP, and what is foreseen of its UCIe ports."""

    def __init__(self):
        self.approaches, self.listed, self.egress_to = {}, [], None

    def bounds(self, long long base_ps):
        """(target, time) for all packets on their way to a last link.

        None of them is at the IO NoC earlier, if no event is executed before `base_ps`.
        """
        cdef Approach approach
        cdef Sender sender
        cdef list found = []
        for approach in self.listed:
            for sip, sender in approach.senders.items():
                if sender.in_flight_ps.size:
                    found.append(
                        (sip, max(sender.earliest_send_ps(base_ps), approach.gate_ps(base_ps)))
                    )
        return found

    def foresee(self, long long before_ps):
        """Let the packets that are at the IO NoC before `before_ps` enter their messages.

        No other packet may come to a UCIe port before. Returns when the first of the others that
        are known is there, `NEVER_PS` without any.
        """
        cdef Approach approach, first
        while True:
            first = None
            for approach in self.listed:
                if approach.next < approach.size and (first is None or earlier(approach, first)):
                    first = approach
            if first is None:
                return NEVER_PS
            if first.coming[first.next].head_ps >= before_ps:
                return first.coming[first.next].head_ps
            self.foresee_next(first)

    cdef Approach approach(self, int link, FifoServer server, long long pre_ps, long long post_ps):
        """The approach by a link, with the delays of a route before and after it."""
        key = link, pre_ps, post_ps
        found = self.approaches.get(key)
        if found is None:
            found = self.approaches[key] = new_approach(self, server, pre_ps, post_ps)
            self.listed.append(found)
        return <Approach> found

    cdef int foresee_next(self, Approach approach) except -1:
        cdef Coming *coming = &approach.coming[approach.next]
        cdef Packet packet = <Packet> approach.packets[approach.next]
        approach.next += 1
        return foresee(
            <LinkEgress> self.egress_to[packet.transfer.sip], packet, coming.head_ps,
            coming.tail_ps, &coming.service,
        )

    cdef int cross(self, Packet packet, Service *foreseen) except -1:
        """The head of a packet is at the IO NoC now: its service, as it was foreseen."""
        cdef Approach approach = <Approach> packet.approach
        cdef Coming *coming
        if approach.packets[approach.first] is not packet:
            raise InvariantError("IO NoC", "packets of one link have overtaken each other")
        if approach.next == approach.first:
            self.foresee_next(approach)
        coming = &approach.coming[approach.first]
        foreseen[0] = coming.service
        approach.packets[approach.first] = packet.approach = None
        approach.first += 1
        return 0


cdef Lookout watch(object fabric, list egress_to):
    """Foresee the crossings of a fabric by the links to the next SIP, by target.

    Returns None where nothing is foreseen.
    """
    cdef LinkEgress egress
    cdef Lookout lookout = getattr(fabric, "lookout", None)
    cdef dict ahead = {}
    cdef list egresses = [each for each in egress_to if each is not None]
    if lookout is None:
        return None
    for egress in egresses:
        if egress.port.is_replaced:
            return None
        if egress.end.takes_early:
            ahead[egress.port] = egress.port.copied()
    for egress in egresses:
        # Egresses to a switch share a port, and all that pass it have to be foreseen.
        egress.ahead = ahead.get(egress.port)
    lookout.egress_to = [
        None if each is None or (<LinkEgress> each).ahead is None else each for each in egress_to
    ]
    return lookout


cdef object last_link(object fabric, int node):
    """The last link of packets from a node to the UCIe ports, None where nothing is foreseen."""
    return fabric.approach(node)


cdef int foresee(
    LinkEgress egress, Packet packet, long long head_ps, long long tail_ps, Service *service
) except -1:
    """A packet will be at the port at `head_ps`, after all that were foreseen before it.

    Returns its service, and lets it enter its message.
    """
    serve_into(egress.ahead, head_ps, tail_ps, packet.size, service)
    if egress.end.takes_early:
        return egress.depart(packet, service.start_ps, service.tail_ps)
    return 0


cdef long long cross(Lookout lookout, object link, Packet packet, long long tail_ps) except -1:
    """Send a packet whose head is at the IO NoC now; returns the time when its tail has left.

    Raises `InvariantError` where it was foreseen, and wrongly.
    """
    cdef Service foreseen
    cdef long long start_ps, left_ps
    cdef LinkEgress egress = <LinkEgress> link
    if packet.approach is not None:
        lookout.cross(packet, &foreseen)
    elif egress.ahead is None:
        return egress.cross(packet, tail_ps)
    else:
        foresee(egress, packet, egress.engine.now_ps, tail_ps, &foreseen)
    start_ps = egress.serve(packet, tail_ps)
    left_ps = egress.port.tail_ps
    if start_ps != foreseen.start_ps or left_ps != foreseen.tail_ps:
        raise InvariantError(
            egress.port.name,
            f"a packet leaves at {start_ps} ps, it was foreseen for "
            f"{foreseen.start_ps} ps",
        )
    if not egress.end.takes_early:
        egress.depart(packet, start_ps, left_ps)
    return left_ps


cdef inline bint earlier(Approach one, Approach other) noexcept:
    cdef Coming *first = &one.coming[one.next]
    cdef Coming *second = &other.coming[other.next]
    if first.head_ps != second.head_ps:
        return first.head_ps < second.head_ps
    return first.order < second.order


cdef Approach new_approach(Lookout lookout, FifoServer server, long long pre_ps, long long post_ps):
    cdef Approach approach = Approach.__new__(Approach)
    approach.lookout, approach.server = lookout, server
    approach.pre_ps, approach.post_ps = pre_ps, post_ps
    approach.senders, approach.packets = {}, []
    return approach
