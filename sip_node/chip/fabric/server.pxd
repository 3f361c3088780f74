cimport cython

from sip_node.kernel cimport exact
from sip_node.chip.records.time_bins cimport TimeBins


cdef class FifoServer:
    # What each message needs comes first, in two lines of the cache.
    cdef public long long free_ps
    cdef public long long busy_ps
    cdef public long long queued_ps
    cdef public long long nbytes
    cdef public long long tail_ps
    cdef long long _served_nbytes
    cdef long long _served_ps
    cdef public TimeBins bins
    cdef readonly bint is_replaced
    cdef long long _numerator
    cdef long long _denominator
    cdef readonly object byte_ps
    cdef object _bw_gbs
    cdef public object name

    # hot
    @cython.final
    @cython.locals(start_ps=cython.longlong)
    cdef long long serve(self, long long head_ps, long long tail_ps, long long nbytes) except -1
    @cython.final
    cdef FifoServer copied(self)
    # hot
    @cython.final
    @cython.locals(duration_ps=cython.longlong)
    cdef long long _duration_ps(self, long long nbytes) except -1
    cdef object _too_long(self, long long nbytes)
