"""The C types of inbox.py."""

cimport cython

from sip_node.compiled.calendar cimport Actor, Calendar, Event
from sip_node.kernel cimport crossing_events
from sip_node.kernel.arrival_queue cimport ArrivalQueue


cdef class Inbox(Actor):
    cdef readonly long long received
    cdef Calendar _engine
    cdef object _receiver
    cdef int _number
    cdef ArrivalQueue _packets
    cdef set _due

    cpdef int put(
        self, long long time_ps, long long source, long long seq, long long tail_ps, object packet
    ) except -1
    @cython.locals(now_ps=cython.longlong, packets=ArrivalQueue)
    cdef int act(self, Event event, object subject) except -1
    cpdef receive(self, object packet, long long tail_ps, long long source)
