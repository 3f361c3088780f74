cimport cython

from sip_node.chip.fabric.clocked cimport cycle_queue as cycles
from sip_node.chip.fabric.clocked cimport virtual_channels as links
from sip_node.chip.fabric.clocked cimport worm as worms
from sip_node.chip.fabric.clocked.cycle_queue cimport Arbiter, CycleQueue, Requester
from sip_node.chip.fabric.clocked.virtual_channels cimport OutputPort, VirtualChannel
from sip_node.chip.fabric.clocked.virtual_channels cimport VirtualNetwork
from sip_node.chip.fabric.clocked.worm cimport NocClock, Worm
from sip_node.kernel cimport exact
from sip_node.kernel.containers cimport linked_list as lists
from sip_node.kernel.component cimport Component
from sip_node.kernel.containers.linked_list cimport Linked, LinkedList


cdef class Injection(Requester):
    cdef readonly VirtualNetwork network
    cdef readonly Worm worm
    cdef readonly object waiting
    cdef long long left
    cdef VirtualChannel channel, _last
    cdef bint _waits
    cdef NocClock _clock

    cdef int put(self, Worm worm) except -1
    cdef int _begin(self, Worm worm, long long cycle) except -1
    # hot
    @cython.locals(credit=cython.longlong, available=cython.longlong, free_at=cython.longlong)
    cdef long long earliest(self, long long cycle) except -2
    # hot
    @cython.locals(
        channel=VirtualChannel, first=VirtualChannel, usable=cython.longlong,
        credit=cython.longlong,
    )
    cdef long long _credit(self) except -2
    # hot
    @cython.locals(first=VirtualChannel, channel=VirtualChannel)
    cdef int _wait_or_not(self) except -1
    @cython.locals(
        worm=Worm, port=OutputPort, channel=VirtualChannel, is_head=cython.bint,
        waited=cython.longlong,
    )
    cdef Worm send(self, long long now)
    # hot
    @cython.locals(first=VirtualChannel, channel=VirtualChannel, credit=cython.longlong)
    cdef VirtualChannel _next_channel(self, long long now)
    # hot
    @cython.locals(worm=Worm, begun=cython.longlong, span_ps=cython.longlong)
    cdef long long _available(self) except -2


cdef class Injector(Arbiter):
    cdef OutputPort _port
    cdef Component _fabric
    cdef LinkedList _others

    # hot
    @cython.locals(
        item=Linked, chosen=Injection, others=LinkedList, queue=Injection, free_at=cython.longlong
    )
    cpdef void arbitrate(self, long long now) except *
    # hot
    @cython.locals(
        item=Linked, first=Injection, least=cython.longlong, queue=Injection,
        turn=cython.longlong,
    )
    cdef Injection _first_in_turn(self)
    # hot
    @cython.locals(port=OutputPort, worm=Worm)
    cdef int _send(self, Injection queue, long long now) except -1
