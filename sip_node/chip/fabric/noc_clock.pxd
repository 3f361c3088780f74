"""The C types of noc_clock.py."""


cdef class NocClock:
    cdef readonly long long period_ps, flit_bytes

    # hot
    cpdef long long cycle(self, long long time_ps) noexcept
    # hot
    cpdef long long flits(self, long long nbytes) noexcept
