"""Insertions of events by texts, in C; events.py has the interpreted version."""

from sip_node.chip.completion cimport Continuation
from sip_node.kernel.calendar cimport AFTER_ALL, Calendar, Event
from sip_node.kernel.component cimport Component


cdef inline int resume_at(
    Calendar engine, long long time_ps, Continuation continuation
) except -1:
    return engine.resume_at(time_ps, continuation)


cdef inline int after_all(
    Component component, long long time_ps, int step, object subject
) except -1:
    cdef Event event
    event.actor, event.step = component.number, step
    return component.engine.insert(time_ps, AFTER_ALL, event, subject)
