"""The window of a DMA engine in C: see read_window.pyx."""

from sip_node.compiled.calendar cimport Actor, Calendar
from sip_node.compiled.ports cimport Outlet
from sip_node.chip.fabric.packet cimport FabricTransfer


cdef class OpenRead:
    cdef FabricTransfer transfer
    cdef long long total
    cdef long long begin
    # Called when the last packet has left, or None.
    cdef object sent


cdef class ReadWindow(Actor):
    cdef Calendar calendar
    cdef int number
    cdef Outlet outlet
    cdef long long free
    cdef long long packet_bytes
    cdef long long control_bytes
    # The times at which packets land, a heap as of `heapq`.
    cdef list landings
    cdef object reading
    cdef long long wakes_ps

    cdef int open(self, FabricTransfer transfer, object sent) except -1
    cdef int land(self, long long time_ps) except -1
    cdef int fill(self) except -1
    cdef bint send(self, OpenRead reading) except -1
    cdef int wake(self) except -1
