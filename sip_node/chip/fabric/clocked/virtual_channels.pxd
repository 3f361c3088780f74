cimport cython

from sip_node.chip.fabric.clocked cimport cycle_queue as cycles
from sip_node.chip.fabric.clocked cimport worm as worms
from sip_node.chip.fabric.clocked.cycle_queue cimport CycleQueue, Requester
from sip_node.chip.fabric.clocked.worm cimport FlitCounters, PacketPath, Worm
from sip_node.kernel.containers cimport linked_list as lists
from sip_node.kernel.component cimport Component
from sip_node.kernel.containers.int_array cimport IntArray
from sip_node.kernel.containers.linked_list cimport Linked, LinkedList


cdef long long HELD
cdef int TURN_BITS
cdef long long TURNS


@cython.final
cdef class OutputPort(FlitCounters):
    cdef long long delay
    cdef long long free_at
    cdef long long pointer
    cdef int number
    cdef VirtualChannel nominee


@cython.final
cdef class InputPort(Linked):
    cdef long long index
    cdef long long pointer
    cdef long long next_head
    cdef IntArray next_channels
    cdef VirtualChannel nominee


@cython.final
cdef class VirtualNetwork:
    cdef readonly OutputPort port
    cdef readonly long long index
    cdef readonly list channels
    cdef VirtualChannel first
    cdef bint is_limited
    cdef long long space
    cdef LinkedList waiting
    cdef Component _exit_to
    cdef CycleQueue _queue
    cdef long long _capacity
    cdef list _short_of_space

    @cython.locals(channel=VirtualChannel, last=VirtualChannel, index=cython.Py_ssize_t)
    cdef int _link_in_turn(self) except -1
    cpdef void limit(self, long long flits) except *
    @cython.locals(worm=Worm, path=PacketPath, fits=cython.bint)
    cdef bint admits(self, VirtualChannel channel, long long now) except -1
    cdef int give_back(self, long long flits, long long cycle) except -1
    # hot
    @cython.locals(item=Linked, channel=VirtualChannel)
    cdef int retry(self, long long cycle) except -1
    # hot
    cdef int eject(self, Worm worm, long long cycle) except -1


cdef class VirtualChannel(Requester):
    cdef readonly int number
    cdef VirtualChannel following
    cdef long long free_at
    cdef long long pointer
    cdef VirtualChannel nominee
    cdef Requester waiting
    cdef InputPort port
    cdef long long index
    cdef readonly Py_ssize_t depth
    cdef Py_ssize_t oldest
    cdef Py_ssize_t next_slot
    cdef Py_ssize_t count
    cdef bint is_asleep
    cdef readonly Worm worm
    cdef long long left
    cdef long long routing
    cdef readonly VirtualNetwork network
    cdef readonly VirtualChannel held
    cdef VirtualNetwork last_network
    cdef VirtualChannel last_held
    cdef long long _credit_cycles
    cdef IntArray _slots
    cdef list _worms

    # hot
    cdef long long credit(self) except -2
    # hot
    @cython.locals(port=InputPort)
    cdef int give_to(self, VirtualChannel channel) except -1
    # hot
    cdef long long place(self) except -1
    # hot
    @cython.locals(port=InputPort, of_port=cython.longlong)
    cdef long long turn_at(self, VirtualChannel wanted) except -1
    # hot
    @cython.locals(
        entrance=InputPort, port=OutputPort, of_port=cython.longlong, last=cython.longlong
    )
    cdef long long turn_at_input(self) except -1
    # hot
    cdef long long turn_at_output(self) except -1
    # hot
    cdef int head(self, Worm worm, long long cycle) except -1
    # hot
    cdef int body(self, long long cycle) except -1
    cdef int _enter(self, long long cycle) except -1
    # hot
    @cython.locals(arrived=cython.longlong, usable=cython.longlong, waiting=Requester)
    cdef long long take(self, long long now) except -2
    # hot
    @cython.locals(worm=Worm, path=PacketPath)
    cdef int begin(self, long long cycle) except -1
    # hot
    @cython.locals(ready=cython.longlong)
    cdef int end(self, long long now) except -1
    # hot
    @cython.locals(
        held=VirtualChannel, ready=cython.longlong, free_at=cython.longlong, credit=cython.longlong
    )
    cdef long long earliest(self, long long cycle) except -2
