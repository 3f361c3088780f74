cimport cython

from sip_node.chip.fabric.clocked.cycle_queue cimport Arbiter, CycleQueue
from sip_node.chip.fabric.clocked.virtual_channels cimport (
    InputPort,
    OutputPort,
    VirtualChannel,
    VirtualNetwork,
)
from sip_node.chip.fabric.clocked.worm cimport Worm
from sip_node.kernel.containers cimport linked_list as lists
from sip_node.kernel.containers.linked_list cimport Linked, LinkedList


cdef class Router(Arbiter):
    cdef readonly long long leave
    cdef long long allocate
    cdef list inputs
    cdef int outputs
    cdef LinkedList _heads
    cdef list _requested
    cdef LinkedList _inputs
    cdef LinkedList _switched

    @cython.locals(entrance=InputPort)
    cpdef InputPort input(self, long long index)
    @cython.locals(entrance=InputPort)
    cpdef int add_output(self, OutputPort port) except -1
    # hot
    @cython.locals(channel=VirtualChannel, vc=VirtualChannel)
    cpdef void arbitrate(self, long long now) except *
    # hot
    @cython.locals(
        item=Linked, channel=VirtualChannel, head=VirtualChannel, vc=VirtualChannel
    )
    cdef int _compete(self, long long now) except -1
    # hot
    @cython.locals(heads=LinkedList, before=VirtualChannel, item=Linked, other=VirtualChannel)
    cdef int _insert(self, VirtualChannel head) except -1
    # hot
    @cython.locals(
        requested=list, item=Linked, channel=VirtualChannel, vc=VirtualChannel,
        rival=VirtualChannel, index=cython.Py_ssize_t,
    )
    cdef int _give_channels(self, long long now) except -1
    # hot
    @cython.locals(network=VirtualNetwork, first=VirtualChannel, vc=VirtualChannel)
    cdef VirtualChannel _wanted(self, VirtualChannel channel, long long now)
    # hot
    @cython.locals(network=VirtualNetwork, cycle=cython.longlong)
    cdef bint _give(self, VirtualChannel vc, VirtualChannel channel, long long now) except -1
    # hot
    @cython.locals(entrance=InputPort, port=OutputPort, rival=VirtualChannel)
    cdef int _request_switch(self, VirtualChannel channel, long long now) except -1
    # hot
    @cython.locals(
        item=Linked, entrance=InputPort, channel=VirtualChannel, port=OutputPort,
        rival=VirtualChannel,
    )
    cdef int _allocate_switch(self, long long now) except -1
    # hot
    @cython.locals(
        network=VirtualNetwork, vc=VirtualChannel, worm=Worm, entrance=InputPort, port=OutputPort,
        waited=cython.longlong, is_head=cython.bint,
    )
    cdef int _traverse(self, VirtualChannel channel, long long now) except -1
