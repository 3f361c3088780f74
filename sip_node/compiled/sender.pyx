"""A component promise in C: what every packet to another SIP enters and leaves.

See `sip_node.pdes.sender` for the obligations. Messages in flight are few, and they enter nearly in
the order of their departures: an array searched from its front needs a comparison or two.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.string cimport memmove

from runtime.core.errors import InvariantError
from runtime.core.simtime import format_ps
from sip_node.compiled.times cimport later_ps


cdef class Sender:
    """The twin of `ReferenceSender`."""

    def __init__(self, long long path_ps):
        self.path_ps = path_ps

    def __dealloc__(self):
        PyMem_Free(self.in_flight_ps)

    def quiet_until(self, long long time_ps):
        """See `ReferenceSender.quiet_until`."""
        self.quiet_ps = max(self.quiet_ps, time_ps)

    def departed(self, long long entrance_ps):
        """See `ReferenceSender.departed`."""
        self.depart(entrance_ps)

    def entered(self, long long entrance_ps):
        """See `ReferenceSender.entered`."""
        self.enter(entrance_ps)

    def earliest_send_ps(self, long long base_ps):
        """See `ReferenceSender.earliest_send_ps`."""
        return self.earliest_ps(base_ps)

    cdef long long earliest_ps(self, long long base_ps) noexcept:
        """`earliest_send_ps` for C classes."""
        cdef Py_ssize_t index
        cdef long long earliest_ps = later_ps(max(base_ps, self.quiet_ps), self.path_ps)
        for index in range(self.size):
            earliest_ps = min(earliest_ps, max(base_ps, self.in_flight_ps[index]))
        return earliest_ps

    cdef int depart(self, long long entrance_ps) except -1:
        """`departed` for C classes."""
        cdef Py_ssize_t capacity
        cdef void *found
        if self.size == self.capacity:
            capacity = 2 * self.capacity + 8
            found = PyMem_Realloc(self.in_flight_ps, capacity * sizeof(long long))
            if not found:
                raise MemoryError
            self.in_flight_ps, self.capacity = <long long *> found, capacity
        self.in_flight_ps[self.size] = entrance_ps
        self.size += 1
        return 0

    cdef int enter(self, long long entrance_ps) except -1:
        """`entered` for C classes."""
        cdef Py_ssize_t index = 0
        while index < self.size and self.in_flight_ps[index] != entrance_ps:
            index += 1
        if index == self.size:
            raise InvariantError(
                "sender", f"no message departed for the channel at {format_ps(entrance_ps)}"
            )
        self.size -= 1
        memmove(
            &self.in_flight_ps[index],
            &self.in_flight_ps[index + 1],
            (self.size - index) * sizeof(long long),
        )
        return 0
