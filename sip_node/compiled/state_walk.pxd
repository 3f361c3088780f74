"""The state of objects as integers, and a walk over it: see state_walk.pyx."""

from sip_node.chip.fabric.server cimport FifoServer
from sip_node.kernel.containers.int_array cimport IntArray


cdef enum Kind:
    # Equal in two states that recur: an index, a flag, a size.
    SAME
    # A time: equal relative to the time of the state.
    TIME
    # The time at which a server is free: as TIME, or in the past and unchanged.
    FREE
    # A sum, which decides nothing that is simulated.
    COUNT


cdef class StateVector:
    cdef readonly long long now_ps
    # The id of the next event.
    cdef readonly long long ids
    cdef IntArray values
    cdef IntArray kinds

    cdef int append(self, long long value, Kind kind) except -1


cdef class StateWalk:
    # The numbers of the objects that were visited, by identity.
    cdef dict numbers
    cdef StateVector state
    # The ends of the period, while the state moves; None while it is read.
    cdef StateVector first
    cdef StateVector second
    cdef Py_ssize_t place
    cdef long long periods
    # The events of a period.
    cdef long long ids

    cdef int begin_to_read(self, long long now_ps, long long ids) except -1
    cdef int begin_to_shift(
        self, StateVector first, StateVector second, long long periods
    ) except -1
    cdef long long value(self, long long value, Kind kind) except? -1
    cdef bint enters(self, object each) except -1
    cdef int same(self, long long value) except -1
    cdef int server(self, FifoServer server) except -1
