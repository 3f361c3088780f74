"""Transfers that leave a port packet by packet, in C; see `sip_node.chip.fabric.egress_stream`."""

from sip_node.compiled.calendar cimport Actor, Calendar, Event
from sip_node.chip.fabric.packet cimport FabricTransfer, new_packet
from sip_node.compiled.ports cimport Outlet, Port
from sip_node.compiled.server cimport Service

cdef enum:
    NORMAL = 1


cdef class Departure:
    """A transfer on its way out: see the reference."""


cdef class EgressStream(Actor):
    """The twin of `ReferenceEgressStream`."""

    def __init__(self, Calendar engine not None, port, fabric, int node, left):
        self.calendar, self.number = engine, engine.enlist(self)
        self.port, self.outlet, self.left = Port(port), Outlet(fabric, node), left

    def start(self, FabricTransfer transfer not None, long long packet_bytes):
        """See `ReferenceEgressStream.start`."""
        self.begin(transfer, packet_bytes)

    cdef int begin(self, FabricTransfer transfer, long long packet_bytes) except -1:
        """`start` for C classes."""
        cdef Departure departure = Departure.__new__(Departure)
        departure.transfer, departure.packet_bytes = transfer, packet_bytes
        departure.total = transfer.total
        return self.reserve(departure)

    cdef int act(self, Event event, object subject) except -1:
        return self.leave(<Departure> subject)

    cdef int reserve(self, Departure departure) except -1:
        """Reserve the port for the next packet."""
        cdef long long now_ps = self.calendar.now_ps
        cdef Service service
        cdef Event event
        departure.nbytes = min(departure.packet_bytes, departure.total - departure.begin)
        self.port.serve(now_ps, now_ps, departure.nbytes, &service)
        departure.left_ps = service.tail_ps
        if departure.transfer.train is not None:
            departure.transfer.train.at_port(now_ps, service.start_ps, service.tail_ps)
        event.actor = self.number
        return self.calendar.insert(service.start_ps, NORMAL, event, departure)

    cdef int leave(self, Departure departure) except -1:
        """Send the packet that the port serves now, then reserve for the next one."""
        cdef long long begin = departure.begin, left_ps = departure.left_ps
        cdef bint last
        departure.begin = begin + departure.nbytes
        last = departure.begin == departure.total
        self.outlet.send(
            new_packet(departure.transfer, begin, departure.nbytes, last), left_ps
        )
        if not last:
            return self.reserve(departure)
        self.left(departure.transfer, left_ps)
        return 0
