"""Base classes of components in C; component.py describes what each method does."""

from sip_node.kernel.calendar cimport ARRIVALS_FIRST, NORMAL


cdef class Endpoint(Actor):
    """A component in C at the end of routes."""

    cdef int take(self, Packet packet, long long tail_ps) except -1:
        """`accept` of classes that are no texts."""
        raise NotImplementedError(type(self).__name__)

    cpdef void accept(self, Packet packet, long long tail_ps) except *:
        self.take(packet, tail_ps)


cdef class Component(Endpoint):
    """A part of a chip with its own events."""

    cdef int join(self, Calendar engine) except -1:
        self.engine, self.number = engine, engine.enlist(self)
        return 0

    cdef int later(self, long long time_ps, int step, object subject) except -1:
        cdef Event event
        event.actor, event.step = self.number, step
        return self.engine.insert(time_ps, NORMAL, event, subject)

    cdef int ahead(self, long long time_ps, int step, object subject) except -1:
        cdef Event event
        event.actor, event.step = self.number, step
        return self.engine.insert(time_ps, ARRIVALS_FIRST, event, subject)

    cpdef void proceed(self, int step, object subject) except *:
        raise NotImplementedError(type(self).__name__)

    cdef int act(self, Event event, object subject) except -1:
        self.proceed(event.step, subject)
        return 0
