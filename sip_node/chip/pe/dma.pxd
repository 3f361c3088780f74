cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.kernel cimport checksums
from sip_node.kernel cimport records
from sip_node.chip.fabric.egress_stream cimport EgressStream
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.records.packet_train cimport PacketTrain, QueueTimes
from sip_node.chip.records.op_log cimport OpLog
from sip_node.chip.pe.read_window cimport DataLanding, ReadWindow
from sip_node.kernel.component cimport Component


cdef object _READ, _WRITE, _SLOT, _ATOMIC, _OLD
cdef int READ_BEGINS, ROWS_BEGIN, WRITE_BEGINS, FINISHED


cdef class DmaRequest:
    cdef str name
    cdef tuple inputs
    cdef object target
    cdef FabricTransfer reading, writing
    cdef object rows
    cdef bytes data
    cdef object done
    cdef long long tag, total
    cdef unsigned int checksum
    cdef long long packet_bytes, start_ps, requested_ps, step
    cdef QueueTimes times

    cdef void complete(self) except *


cdef class PeDma(Component):
    cdef public long long busy_ps, nbytes
    cdef readonly DataLanding landing
    cdef ReadWindow window
    cdef EgressStream stream
    cdef object locate, _next_flow
    cdef OpLog _log
    cdef bint _records
    cdef object tcm
    # Of a TCM whose `write` is not replaced: its bytes, from address `_memory_base` on.
    cdef object _memory
    cdef long long _memory_base
    cdef int sip, node, _cube, _pe
    cdef long long _overhead_ps, _gather_row_ps, _packet_bytes, idle_channels, tags
    cdef object waiting
    cdef dict requests

    @cython.locals(reading=FabricTransfer)
    cdef void read_from(
        self, DmaRequest request, int sip, int node, long long address, object rows
    ) except *
    cdef void write_to(self, DmaRequest request) except *
    @cython.locals(request=DmaRequest)
    cpdef void acknowledged(self, Packet packet, long long tail_ps) except *
    @cython.locals(request=DmaRequest)
    cpdef void landed(self, FabricTransfer data, long long landed_ps) except *
    cpdef void _left(self, FabricTransfer transfer, long long left_ps) except *
    @cython.locals(request=DmaRequest)
    cpdef void proceed(self, int step, object subject) except *
    @cython.locals(request=DmaRequest)
    cdef DmaRequest _request(self, str name, tuple inputs, object target)
    cdef void _complement(self, DmaRequest request, str name) except *
    @cython.locals(transfer=FabricTransfer)
    cdef FabricTransfer _transfer(
        self, object kind, object block, object data, DmaRequest request
    )
    cdef void _enqueue(self, DmaRequest request) except *
    @cython.locals(times=QueueTimes)
    cdef void _give_trains(self, DmaRequest request) except *
    @cython.locals(now_ps=cython.longlong, begins_ps=cython.longlong)
    cdef void _begin(self, DmaRequest request) except *
    @cython.locals(now_ps=cython.longlong, writing=FabricTransfer, data=bytes)
    cdef void _finish(self, DmaRequest request) except *
