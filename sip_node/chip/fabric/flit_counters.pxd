"""The C types of flit_counters.py."""

cimport cython

from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.fabric.worm cimport Worm
from sip_node.chip.time_bins cimport TimeBins
from sip_node.kernel.linked_list cimport Linked


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
