"""The component promise in C: see sender.pyx."""

cdef class Sender:
    cdef long long path_ps
    cdef long long quiet_ps
    # The entrance times of the messages in flight, in the order of their departures.
    cdef long long *in_flight_ps
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    cdef int depart(self, long long entrance_ps) except -1
    cdef long long earliest_ps(self, long long base_ps) noexcept
    cdef int enter(self, long long entrance_ps) except -1
