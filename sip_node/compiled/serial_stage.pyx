"""Stages of a matrix product that serve one token at a time, in C."""

from collections import deque

from sip_node.compiled.service cimport serve_into


cdef class SerialStage(Stage):
    """Tokens wait in their order; a derived class begins the next one whenever it may."""

    cdef int join(self, Calendar engine, OpLog log, object at) except -1:
        """Called once, when the stage is built."""
        self.calendar, self.number = engine, engine.enlist(self)
        self.log, self.cube, self.pe, self.waiting = log, at.cube, at.pe, deque()
        return 0

    def go_on(self):
        """Something that the next token waits for is free."""
        self.begin()

    cdef int take(self, Token token) except -1:
        token.arrived_ps = self.calendar.now_ps
        self.waiting.append(token)
        return self.begin()

    cdef int begin(self) except -1:
        """Serve the next token, if there is one and all that it needs is free."""
        raise NotImplementedError(type(self).__name__)


cdef class PortStage(SerialStage):
    """A stage that moves tiles through a port between TCM and registers."""

    cdef int serve(self, long long nbytes, Service *service) except -1:
        """Reserve the port for a tile, whose head and tail are both here."""
        cdef long long now_ps = self.calendar.now_ps
        return serve_into(self.server, now_ps, now_ps, nbytes, service)
