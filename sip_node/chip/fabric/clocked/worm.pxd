cimport cython

from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.records.time_bins cimport TimeBins
from sip_node.kernel.containers.int_array cimport IntArray
from sip_node.kernel.containers.linked_list cimport Linked

cdef int EJECTED, LEFT


cdef class NocClock:
    cdef readonly long long period_ps, flit_bytes

    # hot
    cpdef long long cycle(self, long long time_ps) noexcept
    # hot
    cpdef long long flits(self, long long nbytes) noexcept


cdef class Departures:
    cdef readonly object left
    cdef readonly long long nbytes


@cython.final
cdef class PacketPath:
    cdef readonly int target
    cdef readonly long long latency_ps
    cdef tuple before, networks, after
    cdef object injection
    cdef Departures departures
    cdef IntArray routing
    cdef object endpoint
    cdef long long sent, due, admitted
    cdef dict held, early


@cython.final
@cython.freelist(256)
cdef class Worm:
    cdef readonly Packet packet
    cdef PacketPath path
    cdef long long flits, nbytes, head_ps, tail_ps, cycle
    cdef int hop
    cdef long long number


# hot
@cython.locals(worm=Worm)
cdef Worm new_worm(Packet packet, PacketPath path, long long flits, long long tail_ps)


cdef class FlitCounters(Linked):
    cdef readonly str name
    cdef readonly long long index, nbytes
    cdef public TimeBins bins
    cdef long long flit_cycles, flits, queued_cycles, packets, _flit_bytes, _period_ps

    # hot
    @cython.locals(
        period_ps=cython.longlong, packet=Packet, is_head=cython.bint, queued_ps=cython.longlong,
        end_ps=cython.longlong, nbytes=cython.longlong,
    )
    cdef int record(self, Worm worm, long long now, long long waited) except -1
