cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.kernel cimport exact
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.kernel.component cimport Component
from sip_node.kernel.outlet cimport Outlet

cdef int _WOKEN
cdef object _OLD


cdef class OpenRead:
    cdef FabricTransfer transfer
    cdef long long begin
    cdef object sent


cdef class ReadWindow(Component):
    cdef Outlet _outlet
    cdef long long free, _packet_bytes, _control_bytes
    # The times at which packets land, a heap as of `heapq`.
    cdef list landings
    cdef object reading
    cdef long long wakes_ps

    cpdef void begin(self, FabricTransfer transfer, object sent=*) except *
    cpdef void landed(self, long long time_ps) except *
    @cython.locals(request=OpenRead)
    cdef void _fill(self) except *
    # hot
    @cython.locals(begin=cython.longlong)
    cdef bint _send(self, OpenRead reading) except -1
    cdef void _wake(self) except *


cdef class DataLanding(Component):
    cdef FifoServer _port
    cdef Outlet _outlet
    cdef ReadWindow _window
    cdef object _landed
    cdef dict writes, come

    cpdef void forward(self, FabricTransfer write) except *

    @cython.locals(
        port=FifoServer, data=FabricTransfer, write=FabricTransfer, come=cython.longlong,
        complete=cython.bint, head_ps=cython.longlong, start_ps=cython.longlong,
    )
    cpdef void accept(self, Packet packet, long long tail_ps) except *
