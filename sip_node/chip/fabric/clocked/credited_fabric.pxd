cimport cython

from sip_node.chip.fabric cimport packet as packets
from sip_node.chip.fabric.clocked cimport worm as worms
from sip_node.chip.fabric.clocked.injection cimport Injection
from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.fabric.server cimport FifoServer
from sip_node.chip.fabric.clocked.virtual_channels cimport VirtualNetwork
from sip_node.chip.fabric.clocked.worm cimport Departures, NocClock, PacketPath, Worm
from sip_node.kernel.component cimport Component
from sip_node.pdes.sender cimport Sender

cdef int _BEFORE, _BEHIND


cdef class CreditedFabric(Component):
    cdef public long long sent, delivered
    cdef public bint records
    cdef object _graph, _layers, _routes, _network, _send_bounds
    cdef dict _senders, _servers, _paths, _path_of, _endpoints, _capacity_flits, _departures
    cdef NocClock _clock
    cdef long long _sip
    cdef bint _keeps_order

    @cython.locals(transfer=FabricTransfer, path=PacketPath)
    cdef int depart(self, Packet packet, int origin, long long tail_ps) except -1
    @cython.locals(sender=Sender)
    cdef int _note_departure(self, Packet packet) except -1
    @cython.locals(network=VirtualNetwork, cycle=cython.longlong)
    cpdef void release(self, Packet packet) except *
    @cython.locals(worm=Worm)
    cpdef void proceed(self, int step, object subject) except *
    @cython.locals(path=PacketPath, injection=Injection)
    cdef int _enter(self, Worm worm) except -1
    @cython.locals(
        server=FifoServer, head_ps=cython.longlong, tail_ps=cython.longlong,
        start_ps=cython.longlong,
    )
    cdef int _pass(self, Worm worm, object stage, int step) except -1
    @cython.locals(path=PacketPath, now_ps=cython.longlong)
    cdef void _arrived(self, Worm worm) except *
    cdef int _leave(self, Worm worm) except -1
    @cython.locals(path=PacketPath)
    cdef int _deliver(self, Worm worm) except -1
