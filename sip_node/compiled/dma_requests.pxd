"""The requests of a DMA engine in C: see dma_requests.pyx."""

from sip_node.compiled.calendar cimport Actor, Calendar
from sip_node.compiled.egress_stream cimport EgressStream
from sip_node.chip.memory.memory cimport Memory
from sip_node.chip.op_log cimport OpLog
from sip_node.chip.fabric.packet_train cimport QueueTimes
from sip_node.compiled.read_window cimport ReadWindow
from sip_node.chip.fabric.packet cimport FabricTransfer


cdef class DmaRequest:
    # The READ of a block, and the transfer that writes one; a copy has both.
    cdef str name
    # The block that is read, in a tuple, and the block that is written.
    cdef tuple inputs
    cdef object target
    cdef FabricTransfer reading
    cdef FabricTransfer writing
    # Of a gather, instead of the two: its READs, an object in Python.
    cdef object rows
    cdef bytes data
    cdef object done
    cdef long long tag
    cdef long long total
    # Of `data`, from the end of the request on.
    cdef unsigned int checksum
    cdef long long packet_bytes
    cdef long long start_ps
    # When it was queued; and in a run with records, what its packets have waited.
    cdef long long requested_ps
    cdef QueueTimes times

    cdef int complete(self) except -1


cdef class DmaRequests(Actor):
    cdef public long long busy_ps
    cdef public long long nbytes
    cdef Calendar calendar
    cdef int number
    cdef object parts
    cdef object kind_read
    cdef ReadWindow window
    cdef EgressStream stream
    cdef object landing_part
    cdef object locate
    cdef OpLog log
    cdef bint records
    cdef object next_flow
    cdef object tcm
    # Of a TCM whose `write` is not replaced: its bytes, from address `tcm_base` on.
    cdef Memory tcm_memory
    cdef long long tcm_base
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
    cdef FabricTransfer transfer(self, object kind, object block, object data, DmaRequest request)
    cdef FabricTransfer new_transfer(
        self, object kind, int sip, int node, long long address, DmaRequest request, object data,
        object rows
    )
    cdef int read_from(
        self, DmaRequest request, int sip, int node, long long address, object rows
    ) except -1
    cdef int write_to(self, DmaRequest request) except -1
    cdef int give_trains(self, DmaRequest request) except -1
    cdef int enqueue(self, DmaRequest request) except -1
    cdef int land(self, FabricTransfer data, long long landed_ps) except -1
    cdef int land_row(self, DmaRequest request, FabricTransfer data, long long landed_ps) except -1
    cdef int begin(self, DmaRequest request) except -1
    cdef int finish(self, DmaRequest request) except -1
    cdef int after(self, long long time_ps, int step, object subject) except -1
