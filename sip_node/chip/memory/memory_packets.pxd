cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.records.packet_train cimport PacketTrain
from sip_node.chip.memory.access cimport Access, AccessService
from sip_node.chip.memory.packet_arrivals cimport PacketArrivals
from sip_node.kernel.component cimport Component
from sip_node.kernel.outlet cimport Outlet

cdef object _READ, _ATOMIC
cdef int _READ_ARRIVED, _STORED, _NEXT_PIECE, _LOAD, _SEND, _COMBINE


cdef class TransferStore:
    cdef readonly bint keeps_data

    cpdef void written(self, Packet packet) except *
    cpdef FabricTransfer answer(self, FabricTransfer request)
    cpdef void load(self, FabricTransfer data) except *


cdef class Storing:
    cdef tuple message
    cdef long long offset
    cdef object rows
    cdef long long waiting, written_ps
    cdef Packet last


cdef class Answer:
    cdef FabricTransfer data
    cdef long long begun_bytes, sent, loaded_ps


cdef class LeavingPiece:
    cdef Answer answer
    cdef long long begin, size, tail_ps


cdef class WriteAccess(Access):
    cdef MemoryPackets memory
    cdef Packet packet
    cdef Storing storing


cdef class AtomicAccess(Access):
    cdef MemoryPackets memory
    cdef Packet packet
    cdef Storing storing


cdef class ReadAccess(Access):
    cdef MemoryPackets memory
    cdef Packet request
    cdef Answer answer
    cdef long long address_offset, end, left_ps


cdef class MemoryPackets(Component):
    cdef Outlet _outlet
    cdef readonly long long base
    cdef readonly AccessService service
    cdef long long _packet_bytes, _latency_ps
    cdef readonly TransferStore store
    cdef dict storing, answers
    cdef public object on_service
    cdef public PacketArrivals arrivals
    cdef long long _turns

    @cython.locals(storing=Storing, access=WriteAccess)
    cpdef void accept(self, Packet packet, long long tail_ps) except *
    @cython.locals(storing=Storing)
    cdef Storing _storing_of(self, Packet packet)
    cpdef void writes(self, Packet packet, Storing storing, long long done_ps) except *
    @cython.locals(operands=cython.longlong, access=AtomicAccess)
    cdef void _read_before(self, Packet packet, Storing storing, long long tail_ps) except *
    cpdef void combines(self, AtomicAccess access, long long done_ps) except *
    cdef void _write_behind(self, AtomicAccess access) except *
    @cython.locals(answer=Answer, access=ReadAccess)
    cdef void _read(self, Packet request) except *
    # hot
    cdef void _submit_piece(self, ReadAccess access) except *
    @cython.locals(size=cython.longlong, piece=LeavingPiece)
    cpdef void reads(
        self, ReadAccess access, long long first_ps, long long start_ps, long long done_ps
    ) except *
    # hot
    cdef void _send(self, LeavingPiece piece) except *
