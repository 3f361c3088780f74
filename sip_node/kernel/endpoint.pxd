"""The end of a route that inserts its own events, in C: see endpoint.pyx."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.calendar cimport Calendar
from sip_node.compiled.hops cimport Endpoint


cdef class EventEndpoint(Endpoint):
    cdef Calendar _engine
    cdef int _number

    cdef int schedule(
        self, long long time_ps, int step, long long value, Packet packet
    ) except -1
    cdef int happen(self, int step, long long value, Packet packet) except -1
