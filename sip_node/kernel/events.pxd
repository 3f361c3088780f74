"""Insertions of events by texts, in C; events.py has the interpreted version."""

from sip_node.chip.completion cimport Continuation
from sip_node.compiled.calendar cimport Calendar


cdef inline int resume_at(
    Calendar engine, long long time_ps, Continuation continuation
) except -1:
    return engine.resume_at(time_ps, continuation)
