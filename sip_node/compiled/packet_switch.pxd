"""The endpoint of a component with several parts in C: see packet_switch.pyx."""

from sip_node.compiled.hops cimport Endpoint

cdef enum:
    # More than the greatest `Kind`.
    KINDS = 16


cdef class PacketSwitch(Endpoint):
    cdef list receivers
