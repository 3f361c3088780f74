"""The last links before the UCIe ports, in C: see approach.pyx."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.compiled.service cimport Service

cdef struct Coming:
    # Head and tail of a packet at the IO NoC; its place among all that come; once it is `foreseen`,
    # its service at the UCIe port.
    long long head_ps
    long long tail_ps
    long long order
    Service service


cdef class Approach:
    cdef FifoServer server
    cdef long long pre_ps
    cdef long long post_ps
    cdef dict senders
    cdef Lookout lookout
    cdef Coming *coming
    cdef list packets
    cdef Py_ssize_t first
    cdef Py_ssize_t next
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    cdef int depart(self, Packet packet) except -1
    cdef int reserve(self, Packet packet, long long head_ps, long long tail_ps) except -1
    cdef int grow(self) except -1
    cdef long long gate_ps(self, long long base_ps) noexcept


cdef class Lookout:
    cdef dict approaches
    cdef list listed
    cdef list egress_to
    cdef long long orders

    cdef Approach approach(self, int link, FifoServer server, long long pre_ps, long long post_ps)
    cdef int foresee_next(self, Approach approach) except -1
    cdef int cross(self, Packet packet, Service *foreseen) except -1


cdef Lookout watch(object fabric, list egress_to)
cdef object last_link(object fabric, int node)
# `link` is a LinkEgress, whose declaration depends on this one.
cdef long long cross(Lookout lookout, object link, Packet packet, long long tail_ps) except -1


cdef inline bint is_foreseen(Packet packet) noexcept:
    """Whether the time of a packet at its UCIe port is known before it is there."""
    return packet.approach is not None
