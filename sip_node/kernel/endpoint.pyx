"""The end of a route that inserts its own events, in C; endpoint.py has the interpreted version."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.hops cimport Endpoint

cdef enum:
    NORMAL = 1


cdef class EventEndpoint(Endpoint):
    """See endpoint.py; `take` and `accept` are those of `Endpoint`."""

    def join(self, Calendar engine not None):
        """See endpoint.py."""
        self._engine, self._number = engine, engine.enlist(self)

    cdef int schedule(
        self, long long time_ps, int step, long long value, Packet packet
    ) except -1:
        """See endpoint.py; the value is in a field of the struct that holds a time elsewhere."""
        cdef Event event
        event.actor, event.step, event.tail_ps = self._number, step, value
        return self._engine.insert(time_ps, NORMAL, event, packet)

    cdef int act(self, Event event, object subject) except -1:
        return self.happen(event.step, event.tail_ps, <Packet> subject)

    cdef int happen(self, int step, long long value, Packet packet) except -1:
        """See endpoint.py."""
        raise NotImplementedError(type(self).__name__)
