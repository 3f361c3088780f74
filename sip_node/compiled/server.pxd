"""The FIFO server in C: see server.pyx."""

from sip_node.compiled.time_bins cimport LatestServices, OpenBin, TimeBins

cdef struct Service:
    # When a message begins to be served, and when its tail leaves.
    long long start_ps
    long long tail_ps


cdef class FifoServer:
    # What each message needs comes first, in two lines of the cache.
    cdef public long long free_ps
    cdef public long long busy_ps
    cdef public long long queued_ps
    cdef public long long nbytes
    cdef long long served_nbytes
    cdef long long served_ps
    # In a run with records, parts of `load`.
    cdef LatestServices *latest
    cdef OpenBin *open_bin
    cdef long long waited_ps
    cdef long long numerator
    cdef long long denominator
    cdef readonly object byte_ps
    cdef public object name
    # Its load over time, in a run with records.
    cdef TimeBins load

    cdef FifoServer copied(self)
    cdef object too_long(self, long long nbytes)
    cdef long long duration_ps(self, long long nbytes) except -1
    cdef int serve(
        self, long long head_ps, long long tail_ps, long long nbytes, Service *service
    ) except -1
