"""The load of a link over time, in C: see time_bins.pyx."""

cdef struct Load:
    # What a bin holds, and a service adds to it: `number` is that of the bin.
    long long number
    long long nbytes
    long long busy_ps
    long long queued_ps
    long long packets


cdef struct LoggedService:
    long long start_ps
    long long end_ps
    long long nbytes
    long long queued_ps
    long long packets


cdef class ServiceTemplate:
    cdef LoggedService *services
    cdef Py_ssize_t count
    cdef TimeBins bins


cdef class TimeBins:
    cdef readonly int shift
    cdef public long long waited_ps
    cdef long long end_ps
    # The bin that is open, and those before it.
    cdef Load load
    cdef Load *loads
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity
    # The services from the start of a log on, for `ServiceTemplate`.
    cdef bint is_logged
    cdef LoggedService *log
    cdef readonly Py_ssize_t logged
    cdef Py_ssize_t log_capacity

    cdef int serve(
        self,
        long long start_ps,
        long long end_ps,
        long long nbytes,
        long long queued_ps,
        long long packets,
    ) except -1
    cdef int open(self, long long time_ps) except -1
    cdef int close(self) except -1
    cdef int double(self) except -1
    cdef int note(self, LoggedService *service) except -1
