cimport cython

from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.memory.access cimport Access
from sip_node.chip.memory.memory_channels cimport AccessChannels, Shares
from sip_node.kernel cimport exact
from sip_node.kernel.containers.int_array cimport IntArray


cdef int _MANY_SHARES


cdef class StripedShares(Shares):
    cdef IntArray nbytes


cdef class Striping:
    cdef readonly long long period_bytes
    cdef long long _burst_bytes
    cdef long long _count
    cdef dict _kept
    cdef long long _offset
    cdef long long _nbytes
    cdef StripedShares _shares

    cdef StripedShares shares(
        self, long long offset, long long nbytes, object rows, long long begin
    )
    cdef StripedShares _kept_shares(
        self, long long offset, long long nbytes, object rows, long long begin
    )
    @cython.locals(
        each=IntArray, index=cython.longlong, length=cython.longlong, pitch=cython.longlong,
        row_bytes=cython.longlong, start=cython.longlong,
    )
    cdef list _bytes_of(self, long long offset, long long nbytes, object rows, long long begin)
    # hot
    @cython.locals(index=cython.longlong, piece=cython.longlong, rounds=cython.longlong)
    cdef void _add_range(self, IntArray each, long long offset, long long nbytes) noexcept


cdef class PseudoChannels(AccessChannels):
    cdef readonly long long burst_bytes
    cdef readonly long long count
    cdef Striping _striping
    cdef long long _penalty_ps
    cdef IntArray wrote

    cdef Shares split(self, Access access)
    # hot
    @cython.locals(channel=FifoServer)
    cdef long long free_ps(self, long long index) except -1
    # hot
    @cython.locals(
        striped=StripedShares, channel=FifoServer, needed=IntArray, wrote=IntArray,
        index=cython.longlong, place=cython.Py_ssize_t, first_ps=cython.longlong,
        start_ps=cython.longlong, end_ps=cython.longlong, begin_ps=cython.longlong,
    )
    cdef long long serve(
        self, Shares shares, long long head_ps, long long tail_ps, bint writes, long long waited_ps
    ) except -1
