"""A walk over the state of some objects, which reads it or moves it by whole periods.

The walk comes to every field in one order, which follows from the state alone. So equal states give
equal vectors, and the same walk writes the values of a later period back. An object to which
several others refer has the number of its first visit.
"""

from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.state_vector cimport COUNT, FREE, SAME, TIME, Kind, StateVector


class NotClosed(Exception):
    """Something else uses, or waits for, a resource of what is walked over."""


cdef class StateWalk:
    """The mechanics of a walk; a derived class comes to the fields of its objects."""

    cdef int begin_to_read(self, long long now_ps, long long ids) except -1:
        """Note the values of the fields in a new vector."""
        self.first = self.second = None
        self.state = StateVector(now_ps, ids)
        self.numbers = {}
        return 0

    cdef int begin_to_shift(
        self, StateVector first, StateVector second, long long periods
    ) except -1:
        """Move the fields by `periods` times the period from `first` to `second`."""
        self.first, self.second, self.periods, self.place = first, second, periods, 0
        self.ids = second.ids - first.ids
        self.numbers = {}
        return 0

    cdef long long value(self, long long value, Kind kind) except? -1:
        """Come to a field: note its value, or return its value of later."""
        cdef Py_ssize_t place = self.place
        if self.second is None:
            self.state.append(value, kind)
            return value
        self.place = place + 1
        return value + self.periods * (self.second.values[place] - self.first.values[place])

    cdef int same(self, long long value) except -1:
        self.value(value, SAME)
        return 0

    cdef bint enters(self, object each) except -1:
        """Whether an object is visited for the first time; notes its number."""
        cdef size_t identity = <size_t> <void *> each
        number = self.numbers.get(identity)
        if number is not None:
            self.same(number)
            return False
        self.numbers[identity] = len(self.numbers)
        self.same(-1)
        return True

    cdef int server(self, FifoServer server) except -1:
        if not self.enters(server):
            return 0
        server.free_ps = self.value(server.free_ps, FREE)
        server.busy_ps = self.value(server.busy_ps, COUNT)
        server.queued_ps = self.value(server.queued_ps, COUNT)
        server.nbytes = self.value(server.nbytes, COUNT)
        return 0
