"""The C types of packet.py. Packets and transfers refer to no object that refers to them."""

cimport cython

from sip_node.chip.records.packet_train cimport PacketTrain

cdef long long _NO_STEP


@cython.no_gc
@cython.freelist(256)
cdef class FabricTransfer:
    cdef public object kind
    cdef public int source_sip, source_node, sip, node
    cdef public long long address, tag, total, sent_ps
    cdef public object payload, body, flow, rows
    cdef public int element
    cdef public object call
    cdef public PacketTrain train
    cdef public long long step


@cython.no_gc
@cython.freelist(256)
cdef class Packet:
    cdef public FabricTransfer transfer
    cdef public long long begin, size
    cdef public bint last
    cdef public long long entrance_ps
    cdef public object space, came_from
    # The approach on which its time at the IO NoC is known; see approach.py.
    cdef readonly object approach
    cdef public PacketTrain train
    cdef public long long link_ps, longest_ps
    cdef public str longest_link

    # hot
    cpdef int queued(self, long long waited_ps, str link) except -1


# hot
@cython.locals(transfer=FabricTransfer)
cpdef FabricTransfer new_transfer(
    object kind, int source_sip, int source_node, int sip, int node
)
# hot
@cython.locals(packet=Packet)
cpdef Packet new_packet(FabricTransfer transfer, long long begin, long long size, bint last)
cpdef PacketTrain train_of(FabricTransfer transfer)
