"""The sending end of a link between SIPs, in C: see link_egress.pyx."""

from sip_node.compiled.calendar cimport Actor, Calendar
from sip_node.compiled.op_log cimport OpLog
from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.fabric.packet_train cimport PacketTrain
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.service cimport Service


cdef class LinkEnd(Actor):
    # Whether it takes packets before they cross: it only makes messages of them.
    cdef bint takes_early

    cdef int land(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    ) except -1


cdef class OpenRecord:
    cdef long long start_ps
    cdef long long nbytes
    # When its first packet came to the port; and in a run with records, its packets there.
    cdef long long requested_ps
    cdef PacketTrain train


cdef class LinkEgress:
    cdef readonly object port
    cdef readonly long long latency_ps
    cdef readonly long long sent
    cdef Calendar calendar
    cdef FifoServer server
    # The port as it is after the last crossing that was foreseen.
    cdef FifoServer ahead
    cdef OpLog log
    cdef object source
    cdef LinkEnd end
    cdef object arrive
    cdef dict begun

    cdef long long pass_on(self, Packet packet, long long tail_ps) except -1
    cdef int foresee(
        self, Packet packet, long long head_ps, long long tail_ps, Service *service
    ) except -1
    cdef int pass_foreseen(self, Packet packet, long long tail_ps, Service *foreseen) except -1
    cdef int serve(self, Packet packet, long long tail_ps, Service *service) except -1
    cdef int record(self, Packet packet, long long start_ps, long long left_ps) except -1
    cdef int note(
        self, OpenRecord begun, Packet packet, long long start_ps, long long left_ps
    ) except -1
    cdef int depart(self, Packet packet, long long head_ps, long long tail_ps) except -1
