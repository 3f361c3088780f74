"""Base classes of components in C, which the calendar calls and packets reach."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.kernel.calendar cimport Actor, Calendar, Event


cdef class Endpoint(Actor):
    cdef int take(self, Packet packet, long long tail_ps) except -1
    cpdef void accept(self, Packet packet, long long tail_ps) except *


cdef class Component(Endpoint):
    cdef readonly Calendar engine
    # By which the calendar names it.
    cdef int number

    cdef int join(self, Calendar engine) except -1
    cdef int later(self, long long time_ps, int step, object subject) except -1
    cdef int ahead(self, long long time_ps, int step, object subject) except -1
    cpdef void proceed(self, int step, object subject) except *
