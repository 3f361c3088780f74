"""The passage of packets through clocked routers in C: see credited_hops.pyx."""

from sip_node.compiled.calendar cimport Event
from sip_node.compiled.clocked_routers cimport ClockedRouters
from sip_node.chip.fabric.packet cimport Packet
from sip_node.compiled.router_parts cimport NetworkPart, SourcePart
from sip_node.compiled.router_state cimport VirtualNetwork, Worm


cdef class WormPool:
    cdef list blocks
    cdef Worm *free

    cdef Worm *new(self, Packet packet) except NULL
    cdef Packet release(self, Worm *worm)


cdef class PacketPath:
    cdef readonly long long latency_ps
    cdef int target
    cdef int notified
    cdef tuple before
    cdef tuple after
    cdef tuple parts
    cdef NetworkPart ejecting
    cdef SourcePart source
    cdef object endpoint
    cdef VirtualNetwork **networks
    cdef long long sent
    cdef long long due
    cdef long long admitted
    cdef Worm *held
    cdef dict early


cdef class CreditedHops(ClockedRouters):
    cdef public long long sent
    cdef public long long delivered
    # Whether packets have trains, in a run with records.
    cdef public bint records
    cdef long long sip
    cdef bint restores_order_here
    cdef WormPool worms
    cdef object find_path
    cdef object send_bounds
    cdef dict senders
    cdef dict paths
    cdef dict endpoints
    cdef dict servers
    cdef dict left
    cdef dict bytes_waiting

    cdef int depart(self, Packet packet, int origin, long long tail_ps) except -1
    cdef long long flits(self, long long nbytes) noexcept
    cdef int enter(self, PacketPath path, Event event, Packet packet) except -1
    cdef int leave(self, PacketPath path, Event event, Packet packet) except -1
    cdef int reserve(self, object stage, Event event, Packet packet) except -1
    cdef int arrived(self, Worm *worm) except -1
    cdef int deliver(self, PacketPath path, Packet packet, long long tail_ps) except -1
