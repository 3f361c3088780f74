cimport cython

from sip_node.chip.records.op_log cimport OpLog
from sip_node.kernel cimport checksums
from sip_node.kernel cimport records
from sip_node.kernel.component cimport Component

cdef int _NEXT, _STREAMED, _STREAM_STORED, _PASS_ENDS, _KEPT_STORED


cdef class ChainRun:
    cdef readonly object chain, targets, times, done
    cdef public long long queued_ps, least_end_ps, step
    cdef public int begun, open
    cdef dict _checksums

    @cython.locals(data=bytes)
    cpdef unsigned int checksum(self, int number) except? 0


cdef class RunningPass:
    cdef ChainRun run
    cdef object each, times
    cdef long long fetch_ps, start_ps, streamed_ps, computed_ps, requested_ps, stored_ps, kept_ps
    cdef bint waited, recorded


cdef class VectorChains(Component):
    cdef object _calendar, _tcm, _fetch_store, _fetch, _store, _paths, _cycles
    cdef OpLog _log
    cdef int _cube, _pe
    cdef object _waiting
    cdef bint _is_running
    cdef dict _times

    @cython.locals(stream=RunningPass)
    cpdef void proceed(self, int step, object subject) except *
    cdef _next(self)
    @cython.locals(
        free_ps=cython.longlong, fetch_ps=cython.longlong, requested_ps=cython.longlong,
        start_ps=cython.longlong, streamed_ps=cython.longlong, computed_ps=cython.longlong,
        stream=RunningPass,
    )
    cdef _begin(self, ChainRun run)
    cdef long long _least_ps(self, ChainRun run) except -1
    @cython.locals(
        now_ps=cython.longlong, stored_ps=cython.longlong, start_ps=cython.longlong,
        end_ps=cython.longlong,
    )
    cdef _store_streamed(self, RunningPass stream)
    @cython.locals(run=ChainRun, now_ps=cython.longlong, end_ps=cython.longlong)
    cdef _end_pass(self, RunningPass stream)
    cdef _stored(self, ChainRun run, object numbers, long long start_ps)
    cdef _finish_one(self, ChainRun run)
    @cython.locals(run=ChainRun, requested_ps=cython.longlong)
    cdef _record_pass(self, RunningPass stream)
    @cython.locals(start_ps=cython.longlong, waited=cython.bint)
    cdef long long _record_steps(
        self, ChainRun run, object numbers, list bounds_ps, long long requested_ps
    ) except -2
    @cython.locals(start_ps=cython.longlong, end_ps=cython.longlong)
    cdef _record_copy(
        self, ChainRun run, int number, str name, tuple span_ps, object source, object copy
    )


@cython.locals(total=cython.longlong)
cdef list _shared(long long start_ps, long long end_ps, object weights)
