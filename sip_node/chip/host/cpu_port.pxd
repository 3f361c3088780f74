cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.kernel.calendar cimport Calendar
from sip_node.kernel.outlet cimport Outlet


cdef class ForwardedCommand:
    cdef Packet command
    cdef object answers


cdef class CpuPort:
    cdef Calendar _engine
    cdef Outlet _outlet
    cdef int _sip, _node
    cdef long long _control_bytes
    cdef dict _forwarded
    cdef long long _tags

    @cython.locals(size=cython.longlong, now_ps=cython.longlong)
    cpdef int send(self, int node, object body, long long nbytes, long long tag=*) except -1
    cpdef int forward(self, Packet command, object parts) except -1
    @cython.locals(asked=FabricTransfer)
    cpdef int answer(self, Packet command, object done) except -1
    @cython.locals(forwarded=ForwardedCommand)
    cpdef int answered(self, Packet packet) except -1
