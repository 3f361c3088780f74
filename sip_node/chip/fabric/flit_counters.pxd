"""The C types of flit_counters.py."""

cimport cython

from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.fabric.worm cimport Worm
from sip_node.chip.time_bins cimport TimeBins
from sip_node.kernel.linked_list cimport Linked


cdef class FlitCounters(Linked):
    cdef readonly str name
    cdef readonly long long index
    cdef readonly long long nbytes
    cdef public TimeBins bins
    cdef long long flit_cycles
    cdef long long flits
    cdef long long queued_cycles
    cdef long long packets
    cdef long long _flit_bytes
    cdef long long _period_ps

    # hot
    @cython.locals(
        period_ps=cython.longlong, packet=Packet, is_head=cython.bint, queued_ps=cython.longlong,
        end_ps=cython.longlong, nbytes=cython.longlong,
    )
    cdef int record(self, Worm worm, long long now, long long waited) except -1
