"""The C types of m_cpu.py."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.host.cpu_port cimport CpuPort
from sip_node.kernel.endpoint cimport EventEndpoint


cdef class MCpu(EventEndpoint):
    cdef object _chip
    cdef int _cube
    cdef list _pes
    cdef CpuPort _port
