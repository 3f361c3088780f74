cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.ports.link_egress cimport LinkEnd
from sip_node.chip.ports.run_block cimport OpenRun, RunBlock


cdef class PacketRuns(LinkEnd):
    cdef readonly long long source
    cdef long long _target, _transfers
    cdef dict _numbers, _open
    cdef list _runs

    @cython.locals(transfer=FabricTransfer, run=OpenRun)
    cpdef arrive(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    )
    @cython.locals(run=OpenRun)
    cdef OpenRun _begin(self, FabricTransfer transfer)
    @cython.locals(run=OpenRun)
    cpdef list take(self)


cdef class PartialTransfer:
    cdef FabricTransfer transfer
    cdef long long nbytes


cdef class ArrivingTransfers:
    cdef object _lp_of
    cdef dict _begun, _next

    @cython.locals(begun=PartialTransfer)
    cpdef check_at_rest(self)
    @cython.locals(run=RunBlock)
    cpdef receive(self, object message, object end)
    @cython.locals(begun=PartialTransfer)
    cpdef FabricTransfer transfer(self, object message, RunBlock run)


cdef str _fault(PartialTransfer begun, RunBlock run, Py_ssize_t payload_bytes)
@cython.locals(
    total=cython.longlong, end=cython.longlong, is_read=cython.bint, index=cython.Py_ssize_t,
    size=cython.longlong,
)
cdef str _packet_fault(PartialTransfer begun, RunBlock run)
@cython.locals(transfer=FabricTransfer)
cdef FabricTransfer _transfer_of(RunBlock run)
