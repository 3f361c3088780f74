"""Which channels have a request in which cycle: see cycle_agenda.pyx."""

from sip_node.compiled.arena cimport Arena
from sip_node.compiled.calendar cimport Actor, Calendar
from sip_node.compiled.router_state cimport Arbiter, Requester

cdef enum:
    # Event.step of a cycle with requests; actors derived from `CycleAgenda` add others.
    TICK = 0


cdef struct Agendum:
    # The channels with a request in `cycle`, and the next one of the same place in the agenda.
    long long cycle
    Requester *first
    Requester *last
    Agendum *next


cdef class CycleAgenda(Actor):
    cdef Calendar calendar
    cdef Arena arena
    cdef int number
    cdef long long period_ps
    cdef Agendum **agenda
    cdef Agendum *free_agenda
    # The arbiters of the present cycle, of `channels` channels.
    cdef Arbiter **active
    cdef int channels

    cdef int add(self, Requester *channel, long long cycle) except -1
    cdef int execute(self, long long cycle) except -1
    cdef int serve_requests(self, Arbiter *arbiter, long long cycle) except -1
    cdef int make_room(self, Arbiter *arbiter) except -1
