"""The C types of worm.py."""

cimport cython

from sip_node.chip.fabric.packet cimport Packet
from sip_node.kernel.int_array cimport IntArray

cdef int EJECTED, LEFT


cdef class Departures:
    cdef readonly object left
    cdef readonly long long nbytes


@cython.final
cdef class PacketPath:
    cdef readonly int target
    cdef readonly long long latency_ps
    cdef tuple before, networks, after
    cdef object injection
    cdef Departures departures
    cdef IntArray routing
    cdef object endpoint
    cdef long long sent, due, admitted
    cdef dict held, early


@cython.final
@cython.freelist(256)
cdef class Worm:
    cdef readonly Packet packet
    cdef PacketPath path
    cdef long long flits, nbytes, head_ps, tail_ps, cycle
    cdef int hop
    cdef long long number


# hot
@cython.locals(worm=Worm)
cdef Worm new_worm(Packet packet, PacketPath path, long long flits, long long tail_ps)
