"""The state of transfers in flight: see transfer_walk.pyx."""

from sip_node.chip.memory.memory_packets cimport Answer, MemoryPackets, Storing
from sip_node.chip.memory.access cimport Access
from sip_node.chip.memory.transaction_queue cimport AccessQueue
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.records.packet_train cimport PacketTrain, QueueTimes
from sip_node.compiled.state_walk cimport StateWalk


cdef class TransferWalk(StateWalk):
    # (transfer, number of its request) of all transfers in flight.
    cdef readonly list transfers
    # The requests, by number, whose block is written.
    cdef readonly set written
    cdef long long now_ps
    # By SIP and node, the senders of requests; and by these and the tag, the number of a request.
    cdef dict owners
    cdef dict request_of

    cdef bint owns(self, FabricTransfer transfer) except -1
    cdef int transfer(self, FabricTransfer transfer) except -1
    cdef int times(self, QueueTimes times) except -1
    cdef int train(self, PacketTrain train) except -1
    cdef int packet(self, Packet packet) except -1
    cdef int memory(self, MemoryPackets memory) except -1
    cdef int queue(self, AccessQueue queue) except -1
    cdef int access(self, Access access) except -1
    cdef int answer(self, Answer answer) except -1
    cdef int storing(self, Storing storing) except -1
