"""The turns of messages at a port in C; see `sip_node.chip.memory.port_turns`."""

from collections import deque

from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.memory_queue cimport Access, AccessService
from sip_node.compiled.ports cimport Port
from sip_node.compiled.server cimport Service
from sip_node.compiled.time_bins cimport TimeBins

cdef enum:
    NORMAL = 1


cdef class PortTurns(AccessService):
    """The twin of `ReferencePortTurns`."""

    def __init__(self, Calendar engine not None, port):
        self.calendar, self.number = engine, engine.enlist(self)
        self.port, self.later = Port(port), {}

    cdef int take(self, Access access) except -1:
        """Reserve the port for an access, or let it wait for its turn."""
        access.submitted_ps = self.calendar.now_ps
        if access.message not in self.later:
            return self.reserve(access, None)
        behind = self.later[access.message]
        if behind is None:
            self.later[access.message] = deque([access])
        else:
            behind.append(access)
        return 0

    cdef int act(self, Event event, object subject) except -1:
        # The first access of the message has begun.
        behind = self.later.pop(subject)
        if behind:
            return self.reserve(<Access> behind.popleft(), behind)
        return 0

    cdef int reserve(self, Access access, object behind) except -1:
        """Reserve the port for accesses of one message until one of them has to wait."""
        cdef long long now_ps = self.calendar.now_ps
        cdef TimeBins bins = None
        cdef Service service
        cdef Event event
        if self.port.server is not None:
            bins = self.port.server.load
        while True:
            if access.train is not None and bins is not None:
                bins.next_wait[0] = now_ps - access.submitted_ps
            self.port.serve(now_ps, access.tail_ps, access.nbytes, &service)
            if access.train is not None:
                access.train.wait_at_channels(
                    1, access.submitted_ps, service.start_ps, service.tail_ps
                )
            if service.start_ps > now_ps:
                self.later[access.message] = behind
                event.actor = self.number
                self.calendar.insert(service.start_ps, NORMAL, event, access.message)
                return access.begin_service(service.start_ps, service.start_ps, service.tail_ps)
            access.begin_service(service.start_ps, service.start_ps, service.tail_ps)
            if not behind:
                return 0
            access = <Access> behind.popleft()
