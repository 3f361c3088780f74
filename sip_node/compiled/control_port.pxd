"""The control ports of CPUs in C: see control_port.pyx."""

from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.hops cimport Endpoint
from sip_node.chip.fabric.packet cimport Packet
from sip_node.kernel.outlet cimport Outlet


cdef class Forwarded:
    # A command that other CPUs carry out parts of, and the packet that it came with.
    cdef Packet command
    cdef Py_ssize_t left
    cdef bint answered
    cdef long long start_ps
    cdef long long end_ps


cdef class ControlPort:
    cdef Calendar calendar
    cdef Outlet outlet
    cdef object kind
    cdef object done
    cdef int sip
    cdef int node
    cdef long long control_bytes
    cdef long long tags
    cdef dict forwarded

    cdef int send_to(self, int node, object body, long long nbytes, long long tag) except -1
    cdef int answer_to(self, Packet command, object done) except -1


cdef class CommandSpread(Endpoint):
    cdef Calendar calendar
    cdef int number
    cdef ControlPort port
    cdef list nodes
    cdef object signal
