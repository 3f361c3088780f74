"""The traversal of routes in C: see hops.pyx."""

from sip_node.chip.fabric.packet cimport Packet
from sip_node.chip.fabric.approach cimport Approach, Lookout
from sip_node.kernel.calendar cimport Actor, Calendar, Event
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.kernel.component cimport Endpoint

cdef struct Stage:
    # The delays before and after a link with a bandwidth, which are those of all its routes.
    long long pre_ps
    long long post_ps


cdef enum:
    # A power of two.
    RECENT_ROUTES = 256


cdef struct RecentRoute:
    # A route, which `routes` keeps, and its ends; NULL at first.
    long long ends
    void *route


cdef class Route:
    # The links with a bandwidth.
    cdef int *links
    cdef int length
    cdef int target
    cdef long long latency_ps
    # Of a route to the UCIe ports; None where its last link is not served in C.
    cdef Approach approach


cdef class Hops(Actor):
    cdef public long long sent
    cdef public long long delivered
    # Whether packets have trains, in a run with records.
    cdef public bint records
    cdef Calendar calendar
    cdef int number
    cdef long long sip
    cdef int gateway
    cdef object find_stages
    cdef object send_bounds
    cdef readonly Lookout lookout
    cdef dict senders
    cdef dict routes
    # The routes found last, by a hash of their ends: the dict takes four times as long.
    cdef RecentRoute[RECENT_ROUTES] recent
    cdef dict endpoints
    cdef list links
    # The names of the links.
    cdef list names
    # By link: a machine has more routes than links, and they would not fit into its caches.
    cdef Stage *stages

    cdef Route route(self, int source, int target)
    cdef Route new_route(self, tuple stages, int target)
    cdef Approach approach_of(self, Route route)
    cdef int depart(self, Packet packet, int origin, long long tail_ps) except -1
    cdef int advance(self, Route route, Event event, Packet packet) except -1
    cdef int deliver(self, int node, Packet packet, long long tail_ps) except -1


cdef bint in_c(object server) except -1
