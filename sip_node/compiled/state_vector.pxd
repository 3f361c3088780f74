"""The state of products as integers: see state_vector.pyx."""

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
    cdef long long *values
    cdef char *kinds
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    cdef int append(self, long long value, Kind kind) except -1
