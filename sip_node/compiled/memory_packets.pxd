"""The packets of transfers to and from a memory in C: see memory_packets.pyx."""

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.compiled.calendar cimport Calendar
from sip_node.compiled.hops cimport Endpoint
from sip_node.compiled.memory_queue cimport Access, AccessService
from sip_node.compiled.ports cimport Outlet


cdef class TransferStore:
    cdef readonly bint keeps_data
    cdef object in_python

    cdef int store(self, Packet packet) except -1
    cdef FabricTransfer answer_to(self, FabricTransfer request)
    cdef int load(self, FabricTransfer data) except -1


cdef class Storing:
    # A transfer that is being written: the packets that wait, and the last one once it is here.
    cdef tuple message
    cdef long long offset
    cdef object rows
    cdef long long waiting
    cdef long long written_ps
    cdef Packet last


cdef class WriteAccess(Access):
    cdef MemoryPackets memory
    cdef Packet packet
    cdef Storing storing


cdef class Answer:
    # The DATA of a READ: bytes whose service has begun, of which `sent` have left.
    cdef FabricTransfer data
    cdef long long total
    cdef long long begun_bytes
    cdef long long sent
    cdef long long loaded_ps


cdef class ReadAccess(Access):
    # A packet of a READ: the bytes from `begin` to `end` wait, the others have left by `left_ps`.
    cdef MemoryPackets memory
    cdef Packet request
    cdef Answer answer
    cdef long long address_offset
    cdef long long end
    cdef long long left_ps


cdef class Piece:
    cdef Answer answer
    cdef long long begin
    cdef long long size
    cdef long long tail_ps


cdef class MemoryPackets(Endpoint):
    cdef Calendar calendar
    cdef int number
    cdef Outlet outlet
    cdef long long base
    cdef AccessService service
    cdef object service_in_python
    cdef long long packet_bytes
    cdef long long latency_ps
    cdef TransferStore store
    cdef dict storing
    cdef dict answers
    cdef public object on_service

    cdef int after(self, long long time_ps, int step, object subject) except -1
    cdef int submit(self, Access access) except -1
    cdef Storing storing_of(self, Packet packet)
    cdef int writes(
        self, Packet packet, Storing storing, long long done_ps
    ) except -1
    cdef int read(self, Packet request) except -1
    cdef int submit_piece(self, ReadAccess access) except -1
    cdef int reads(
        self, ReadAccess access, long long first_ps, long long start_ps, long long done_ps
    ) except -1
    cdef int send(self, Piece piece) except -1
