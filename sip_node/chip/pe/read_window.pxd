"""The C types of read_window.py."""

cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.kernel cimport exact
from sip_node.chip.fabric.packet cimport FabricTransfer
from sip_node.kernel.component cimport Component
from sip_node.kernel.outlet cimport Outlet

cdef int _WOKEN


cdef class OpenRead:
    cdef FabricTransfer transfer
    cdef long long begin
    cdef object sent


cdef class ReadWindow(Component):
    cdef Outlet _outlet
    cdef long long free
    cdef long long _packet_bytes
    cdef long long _control_bytes
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
