cimport cython

from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.ports.link_egress cimport LinkEgress
from sip_node.kernel cimport exact
from sip_node.pdes.sender cimport Sender

cdef int _MANY_CROSSED


cdef class Coming:
    cdef Packet packet
    cdef long long head_ps, tail_ps, order, start_ps, left_ps

    cdef bint is_earlier(self, Coming other) noexcept


cdef class Approach:
    cdef FifoServer server
    cdef long long _pre_ps, _post_ps
    cdef dict senders
    cdef Lookout _lookout
    cdef list coming
    cdef Py_ssize_t crossed, foreseen

    @cython.locals(ready_ps=cython.longlong)
    cpdef long long earliest_ps(self, long long base_ps) except -1
    @cython.locals(sender=Sender)
    cdef int depart(self, Packet packet) except -1
    @cython.locals(sender=Sender, coming=Coming)
    cdef int reserve(self, Packet packet, long long head_ps, long long tail_ps) except -1
    @cython.locals(coming=Coming)
    cdef Coming cross(self, Packet packet)


cdef class Lookout:
    cdef dict _approaches
    cdef list _listed, egress_to
    cdef long long orders

    @cython.locals(approach=Approach, sender=Sender, earliest_ps=cython.longlong)
    cpdef list bounds(self, long long base_ps)
    @cython.locals(approach=Approach, coming=Coming)
    cpdef long long foresee(self, long long before_ps) except -1
    @cython.locals(approach=Approach)
    cdef Approach approach(self, int link, FifoServer server, long long pre_ps, long long post_ps)
    @cython.locals(coming=Coming, egress=LinkEgress, packet=Packet)
    cdef int foresee_next(self, Approach approach) except -1
    @cython.locals(approach=Approach, first=Approach, coming=Coming, first_coming=Coming)
    cdef Approach _first(self)


@cython.locals(egress=LinkEgress)
cdef bint watch(Lookout lookout, list egress_to) except -1
@cython.locals(ahead=FifoServer)
cdef int foresee(LinkEgress egress, Coming coming, Packet packet) except -1
@cython.locals(
    approach=Approach, coming=Coming, start_ps=cython.longlong, left_ps=cython.longlong
)
cdef long long cross(LinkEgress egress, Packet packet, long long tail_ps) except -1
