"""Events of actors that are texts, in C; crossing_events.py has the interpreted version."""

from sip_node.compiled.calendar cimport Actor, Calendar, Event


cdef inline int enlist(Calendar engine, Actor actor) except -1:
    return engine.enlist(actor)


cdef inline int schedule(
    Calendar engine, int actor, long long time_ps, int priority, long long tail_ps, object subject
) except -1:
    cdef Event event
    event.actor, event.step, event.context = actor, 0, NULL
    event.tail_ps, event.nbytes = tail_ps, 0
    return engine.insert(time_ps, priority, event, subject)
