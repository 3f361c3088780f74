"""The DATA that a DMA engine has requested, in C: see data_landing.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.compiled.dma_requests cimport DmaRequests
from sip_node.compiled.hops cimport Endpoint
from sip_node.compiled.ports cimport Outlet, Port
from sip_node.compiled.read_window cimport ReadWindow


cdef class DataLanding(Endpoint):
    cdef Calendar calendar
    cdef Port port
    cdef Outlet outlet
    cdef ReadWindow window
    cdef object landed
    # Of a `landed` that is the method of a DMA engine in C, that engine.
    cdef DmaRequests dma
    cdef dict writes
    cdef dict come
