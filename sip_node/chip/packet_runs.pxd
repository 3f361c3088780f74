"""The C types of packet_runs.py."""

cimport cython

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.link_egress cimport LinkEnd
from sip_node.chip.run_block cimport OpenRun


cdef class PacketRuns(LinkEnd):
    cdef readonly long long source
    cdef long long _target
    cdef long long _transfers
    cdef dict _numbers
    cdef dict _open
    cdef list _runs

    @cython.locals(transfer=FabricTransfer, run=OpenRun)
    cpdef arrive(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    )
    @cython.locals(run=OpenRun)
    cdef OpenRun _begin(self, FabricTransfer transfer)
    @cython.locals(run=OpenRun)
    cpdef list take(self)
