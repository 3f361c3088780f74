"""The requests of a DMA engine in C: see dma_requests.pyx."""

from sip_node.compiled.calendar cimport Actor, Calendar
from sip_node.compiled.transfer cimport Transfer


cdef class DmaRequest:
    # The READ of a block, and the transfer that writes one; a copy has both.
    cdef object name
    cdef object source
    cdef object target
    cdef Transfer reading
    cdef Transfer writing
    cdef object data
    cdef object done
    cdef object tag
    cdef object total
    cdef long long packet_bytes
    cdef long long start_ps


cdef class DmaRequests(Actor):
    cdef public long long busy_ps
    cdef public long long nbytes
    cdef Calendar calendar
    cdef int number
    cdef object parts
    cdef object window
    cdef object stream
    cdef object landing_part
    cdef object locate
    cdef object record
    cdef object next_flow
    cdef object tcm
    cdef int sip
    cdef int node
    cdef int cube
    cdef int pe
    cdef long long overhead_ps
    cdef long long packet_bytes
    cdef long long idle_channels
    cdef long long tags
    cdef object waiting
    cdef dict requests

    cdef DmaRequest request(self, object name, object source, object target)
    cdef object transfer(self, object kind, object block, object data, DmaRequest request)
    cdef object enqueue(self, DmaRequest request)
    cdef int begin(self, DmaRequest request) except -1
    cdef int finish(self, DmaRequest request) except -1
    cdef int after(self, long long time_ps, int step, object subject) except -1
