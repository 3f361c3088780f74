cimport cython

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.records.packet_train cimport PacketTrain, QueueTimes
from sip_node.chip.records.op_log cimport OpLog
from sip_node.kernel.calendar cimport Calendar
from sip_node.chip.fabric.server cimport FifoServer


cdef class LinkEnd:
    # Whether it takes packets before they cross: it only makes messages of them.
    cdef bint takes_early

    cpdef arrive(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    )


cdef class OpenRecord:
    cdef long long start_ps, requested_ps, nbytes
    cdef PacketTrain train


cdef class LinkEgress:
    cdef readonly FifoServer port
    cdef readonly long long latency_ps
    cdef public long long sent
    cdef Calendar engine
    # The port as it is after the last crossing that was foreseen; see approach.py.
    cdef FifoServer ahead
    cdef LinkEnd end
    # Of the packets at the port, where they come late: a `Jitter`.
    cdef object jitter
    cdef OpLog _log
    cdef long long _source, _head_ps
    cdef dict _begun

    # hot
    @cython.locals(start_ps=cython.longlong)
    cpdef long long cross(self, Packet packet, long long tail_ps) except -1
    cpdef int notify(self, Packet packet) except -1
    # hot
    @cython.locals(start_ps=cython.longlong, head_ps=cython.longlong)
    cdef long long serve(self, Packet packet, long long tail_ps) except -1
    @cython.locals(late_ps=cython.longlong, ready_ps=cython.longlong)
    cdef long long _late_ps(self, long long head_ps, object jitter) except -1
    cdef int depart(self, Packet packet, long long head_ps, long long tail_ps) except -1
    @cython.locals(begun=OpenRecord, train=PacketTrain)
    cdef int _record(self, Packet packet, long long start_ps, long long left_ps) except -1
    @cython.locals(waited_ps=cython.longlong)
    cdef int _note(
        self, PacketTrain train, Packet packet, long long start_ps, long long left_ps
    ) except -1
