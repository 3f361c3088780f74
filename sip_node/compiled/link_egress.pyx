"""The sending end of a link between SIPs, in C; see `sip_node.chip.link_egress`.

The other end is a `LinkEnd`: the inbox of a SIP of this LP, or the runs of packets for another LP.
An end in Python is called by its `arrive`.
"""

from runtime.core.errors import InvariantError
from runtime.core.trace import IO_CHIPLET, NO_PE
from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.calendar cimport Actor, Calendar
from sip_node.compiled.hops cimport in_c
from sip_node.compiled.op_log cimport OpLog
from sip_node.compiled.operation cimport FOR_LINK, Operation
from sip_node.chip.fabric.packet_train cimport new_train, wait_at_link
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.service cimport Service, serve_into

# By kind, the name of a record.
cdef dict names = {}


cdef class LinkEnd(Actor):
    """The other end of a link."""

    cdef int land(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    ) except -1:
        """`arrive` for C classes."""
        raise NotImplementedError(type(self).__name__)

    def arrive(self, long long head_ps, long long source, long long seq, long long tail_ps,
               Packet packet not None):
        """See `LinkEnd` in `sip_node.chip.link_egress`."""
        self.land(head_ps, source, seq, tail_ps, packet)


cdef class OpenRecord:
    """The record of a transfer of which some packets have crossed."""


cdef class LinkEgress:
    """The twin of `ReferenceLinkEgress`."""

    def __init__(self, Calendar engine not None, OpLog log not None, long long source, port,
                 long long latency_ps):
        self.calendar, self.log, self.source = engine, log, source
        self.port, self.latency_ps = port, latency_ps
        self.server = port if in_c(port) else None
        self.begun = {}

    def connect(self, end):
        """See `ReferenceLinkEgress.connect`."""
        self.end = end if isinstance(end, LinkEnd) else None
        self.arrive = end.arrive

    def cross(self, Packet packet not None, long long tail_ps):
        """See `ReferenceLinkEgress.cross`."""
        return self.pass_on(packet, tail_ps)

    def notify(self, Packet packet not None):
        """See `ReferenceLinkEgress.notify`."""
        self.depart(packet, self.calendar.now_ps, self.calendar.now_ps)

    cdef long long pass_on(self, Packet packet, long long tail_ps) except -1:
        """`cross` for C classes."""
        cdef Service service
        self.serve(packet, tail_ps, &service)
        self.depart(packet, service.start_ps, service.tail_ps)
        return service.tail_ps

    cdef int serve(self, Packet packet, long long tail_ps, Service *service) except -1:
        if self.server is not None:
            serve_into(self.server, self.calendar.now_ps, tail_ps, packet.size, service)
        else:
            service.start_ps, service.tail_ps = self.port.reserve(
                self.calendar.now_ps, tail_ps, packet.size
            )
        return self.record(packet, service.start_ps, service.tail_ps)

    cdef int foresee(
        self, Packet packet, long long head_ps, long long tail_ps, Service *service
    ) except -1:
        """A packet will be at the port at `head_ps`, after all that were foreseen before it.

        Returns its service, and lets it enter its message.
        """
        serve_into(self.ahead, head_ps, tail_ps, packet.size, service)
        if self.end is not None and self.end.takes_early:
            return self.depart(packet, service.start_ps, service.tail_ps)
        return 0

    cdef int pass_foreseen(self, Packet packet, long long tail_ps, Service *foreseen) except -1:
        """`pass_on` for a packet that was foreseen; raises `InvariantError` where it was wrong."""
        cdef Service service
        self.serve(packet, tail_ps, &service)
        if service.start_ps != foreseen.start_ps or service.tail_ps != foreseen.tail_ps:
            raise InvariantError(
                self.port.name,
                f"a packet leaves at {service.start_ps} ps, it was foreseen for "
                f"{foreseen.start_ps} ps",
            )
        if self.end is None or not self.end.takes_early:
            return self.depart(packet, service.start_ps, service.tail_ps)
        return 0

    cdef int record(self, Packet packet, long long start_ps, long long left_ps) except -1:
        """Add the record of a transfer to the op log with its last packet."""
        cdef Operation about
        cdef OpenRecord begun = <OpenRecord> self.begun.get(packet.transfer)
        if begun is None:
            begun = OpenRecord.__new__(OpenRecord)
            begun.start_ps, begun.requested_ps = start_ps, self.calendar.now_ps
            if packet.train is not None:
                begun.train = new_train(None)
            if not packet.last:
                self.begun[packet.transfer] = begun
        elif packet.last:
            del self.begun[packet.transfer]
        begun.nbytes += packet.size
        if begun.train is not None:
            self.note(begun, packet, start_ps, left_ps)
        if packet.last:
            transfer = packet.transfer
            about.start_ps, about.end_ps = begun.start_ps, left_ps
            about.address, about.nbytes = transfer.address, begun.nbytes
            about.cube, about.pe, about.checksum, about.flow_end = IO_CHIPLET, NO_PE, 0, False
            about.requested_ps, about.waited_for = begun.requested_ps, FOR_LINK
            name = names.get(transfer.kind)
            if name is None:
                # Once for each kind: the name of an Enum is a function in Python.
                name = names[transfer.kind] = transfer.kind.name.lower()
            self.log.enter(
                self.port.name, name, &about, (), "", (), (), None, None,
                None if begun.train is None else begun.train.times,
            )
        return 0

    cdef int note(
        self, OpenRecord begun, Packet packet, long long start_ps, long long left_ps
    ) except -1:
        """See `ReferenceLinkEgress._note`."""
        cdef long long waited_ps = wait_at_link(
            begun.train, 0, self.calendar.now_ps, start_ps, left_ps
        )
        if waited_ps:
            packet.queued(waited_ps, self.port.name)
        begun.train.times.at_links(packet.link_ps, packet.longest_link)
        return begun.train.times.at_memory(packet.train.times.memory_ps)

    cdef int depart(self, Packet packet, long long head_ps, long long tail_ps) except -1:
        """Give a packet, with its number, to the other end."""
        cdef long long seq = self.sent
        self.sent += 1
        head_ps += self.latency_ps
        tail_ps += self.latency_ps
        if self.end is not None:
            return self.end.land(head_ps, self.source, seq, tail_ps, packet)
        if self.arrive is None:
            raise AssertionError("a packet crosses a link that leads nowhere")
        self.arrive(head_ps, self.source, seq, tail_ps, packet)
        return 0
