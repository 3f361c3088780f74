"""The agenda of clocked routers: which channels have a request in which cycle; see `cycle_queue`.

There is one event for each cycle with a request. A channel has one request at a time, so lists of
channels are chained by `Requester.next`.
"""

from sip_node.compiled.arena cimport Arena
from sip_node.compiled.calendar cimport Actor, Calendar, Event
from sip_node.compiled.router_state cimport Arbiter, Requester, is_power_of_two

cdef enum:
    # After SimPy's NORMAL (1): what arrives at the picosecond of a cycle is visible in it.
    AFTER_ALL = 2
    # The agenda is a table of this many lists, one of which has the agendum of a cycle.
    PLACES = 256


cdef class CycleAgenda(Actor):
    """Calls the arbiters of one SIP, once in each cycle with a request to them."""

    def __cinit__(self):
        self.arena = Arena()
        self.agenda = <Agendum **> self.arena.take(PLACES, sizeof(Agendum *))

    cdef int add(self, Requester *channel, long long cycle) except -1:
        """`channel` has a request in `cycle`."""
        cdef Agendum **place = &self.agenda[cycle & (PLACES - 1)]
        cdef Agendum *agendum = place[0]
        cdef Event event
        channel.next = NULL
        while agendum and agendum.cycle != cycle:
            agendum = agendum.next
        if agendum:
            agendum.last.next = channel
            agendum.last = channel
            return 0
        agendum = self.free_agenda
        if agendum:
            self.free_agenda = agendum.next
        else:
            agendum = <Agendum *> self.arena.take(1, sizeof(Agendum))
        agendum.cycle, agendum.first, agendum.last = cycle, channel, channel
        agendum.next, place[0] = place[0], agendum
        event.actor, event.step, event.tail_ps = self.number, TICK, cycle
        return self.calendar.insert(cycle * self.period_ps, AFTER_ALL, event, None)

    cdef int execute(self, long long cycle) except -1:
        """Call the arbiters with a request in `cycle`, each once."""
        cdef Agendum **place = &self.agenda[cycle & (PLACES - 1)]
        cdef Agendum *agendum
        cdef Requester *channel
        cdef Arbiter *arbiter
        cdef int index, count = 0
        while place[0].cycle != cycle:
            place = &place[0].next
        agendum = place[0]
        place[0] = agendum.next
        channel = agendum.first
        agendum.next, self.free_agenda = self.free_agenda, agendum
        while channel:
            arbiter = channel.arbiter
            if not arbiter.count:
                self.active[count] = arbiter
                count += 1
            arbiter.requests[arbiter.count] = channel
            arbiter.count += 1
            channel = channel.next
        for index in range(count):
            self.serve_requests(self.active[index], cycle)
        return 0

    cdef int serve_requests(self, Arbiter *arbiter, long long cycle) except -1:
        """Serve the requests of a router or a source, and set their number to 0."""
        raise NotImplementedError(type(self).__name__)

    cdef int make_room(self, Arbiter *arbiter) except -1:
        """Room for the requests of one more channel of `arbiter`. No cycle is being executed."""
        arbiter.channels += 1
        self.channels += 1
        if is_power_of_two(arbiter.channels):
            arbiter.requests = <Requester **> self.arena.take(
                2 * arbiter.channels, sizeof(Requester *)
            )
        if is_power_of_two(self.channels):
            self.active = <Arbiter **> self.arena.take(2 * self.channels, sizeof(Arbiter *))
        return 0
