"""Constructs the parts of clocked routers in C: see router_parts.pyx."""

from sip_node.compiled.arena cimport Arena
from sip_node.compiled.clocked_routers cimport ClockedRouters
from sip_node.compiled.router_state cimport (
    Arbiter,
    Injection,
    InputPort,
    OutputPort,
    VirtualNetwork,
)


from sip_node.chip.time_bins cimport TimeBins


cdef class RouterPart:
    cdef Arena arena
    cdef Arbiter *arbiter
    cdef readonly object pipeline


cdef class LinkPart:
    cdef Arena arena
    cdef OutputPort *port
    cdef Arbiter *router
    cdef InputPort *entrance
    cdef readonly str name
    cdef TimeBins load
    cdef readonly long long index
    cdef long long flit_bytes
    cdef long long period_ps


cdef class NetworkPart:
    cdef Arena arena
    cdef VirtualNetwork *network
    cdef readonly LinkPart port
    cdef readonly long long index


cdef class SourcePart:
    cdef Arena arena
    cdef Injection *injection
    cdef NetworkPart network


cdef class RouterParts:
    cdef ClockedRouters routers
    cdef list networks
    cdef dict sources_of
    cdef dict injectors

    cdef int connect(self, NetworkPart part, RouterPart target, int depth, int wire) except -1
    cdef InputPort *new_entrance(self, Arbiter *router, long long index) except NULL
