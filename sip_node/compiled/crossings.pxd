"""Packets from SIP to SIP in C: see crossings.pyx."""

from sip_node.compiled.approach cimport Lookout
from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.kernel.component cimport Endpoint
from sip_node.compiled.hops cimport Hops
from sip_node.compiled.link_egress cimport LinkEgress, LinkEnd
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.compiled.run_block cimport RunBlock
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.service cimport Service

cdef struct Arrival:
    # A packet by its place in the total order; the packet is in slot `slot`.
    long long time_ps
    long long source
    long long seq
    long long tail_ps
    unsigned int slot


cdef class Inbox(LinkEnd):
    cdef readonly long long received
    cdef Calendar calendar
    cdef int number
    cdef object receive
    cdef Crossings crossings
    cdef Arrival *heap
    cdef unsigned int size
    cdef unsigned int capacity
    cdef list packets
    cdef list free_slots
    cdef set due

    cdef int insert(
        self, long long time_ps, long long source, long long seq, long long tail_ps, object packet
    ) except -1
    cdef Arrival pop(self) except *


cdef class Crossings(Endpoint):
    cdef Calendar calendar
    cdef int number
    cdef object fabric
    cdef Hops hops
    cdef int io_noc
    cdef long long sip
    cdef object send_bounds
    cdef dict senders
    cdef list egress_to
    cdef object switch_port
    cdef FifoServer switch_server
    cdef Inbox inbox
    # In a run with records: of the transfers with packets to come, those in this SIP.
    cdef dict trains
    # Where crossings are foreseen.
    cdef Lookout lookout

    cdef int land_run(self, long long source, FabricTransfer transfer, RunBlock *run) except -1
    cdef int train(self, Packet packet) except -1
    cdef int note_switch(self, Packet packet, long long head_ps, Service service) except -1
    cdef int bound(self, Packet packet, long long entrance_ps) except -1
    cdef int come(self, Packet packet, long long tail_ps, long long source) except -1
    cdef int enter(self, Packet packet, long long tail_ps) except -1
