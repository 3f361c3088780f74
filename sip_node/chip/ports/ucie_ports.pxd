cimport cython

from sip_node.chip.fabric cimport approach
from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.records.packet_train cimport PacketTrain
from sip_node.chip.ports.link_egress cimport LinkEgress, LinkEnd
from sip_node.chip.ports.run_block cimport RunBlock
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.kernel.component cimport Component
from sip_node.kernel.outlet cimport Outlet
from sip_node.pdes.inbox cimport Inbox
from sip_node.pdes.sender cimport Sender


cdef class UciePorts(Component):
    cdef readonly object _chip
    cdef readonly dict _egresses
    cdef long long _sip
    cdef Outlet _outlet
    cdef object _send_bounds
    cdef dict _senders
    cdef list _egress_to
    cdef FifoServer _switch_port
    cdef dict _trains
    cdef PortInbox _inbox

    cpdef void accept(self, Packet packet, long long tail_ps) except *
    @cython.locals(egress=LinkEgress, sender=Sender)
    cpdef long long cross(self, Packet packet, long long tail_ps) except -1
    @cython.locals(index=cython.Py_ssize_t, last=cython.bint, packet=Packet, fault=str)
    cpdef str arrive_run(self, long long source, FabricTransfer transfer, RunBlock run)
    cpdef str fault(self, Packet packet, long long source)
    @cython.locals(sip=cython.longlong, sender=Sender)
    cpdef int arrive(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    ) except -1
    @cython.locals(now_ps=cython.longlong)
    cpdef receive(self, Packet packet, long long tail_ps, long long source)
    @cython.locals(now_ps=cython.longlong, waited_ps=cython.longlong, start_ps=cython.longlong)
    cdef int _pass_switch(self, Packet packet, FifoServer port, long long tail_ps) except -1
    cpdef void proceed(self, int step, object subject) except *
    @cython.locals(train=PacketTrain)
    cdef int _enter_train(self, Packet packet, dict trains) except -1
    cdef int _enter(self, Packet packet, long long tail_ps) except -1


cdef class PortEnd(LinkEnd):
    cdef UciePorts _ports

    cpdef arrive(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    )


cdef class PortInbox(Inbox):
    cdef UciePorts _ports

    cpdef receive(self, object packet, long long tail_ps, long long source)
