"""The C types of cycle_queue.py."""

cimport cython

from sip_node.kernel cimport events
from sip_node.kernel cimport linked_list as lists
from sip_node.kernel.component cimport Component
from sip_node.kernel.linked_list cimport Linked, LinkedList

cdef int DORMANT, _PLACES


cdef class Arbiter(Linked):
    cdef CycleQueue queue
    cdef LinkedList requests

    cpdef void arbitrate(self, long long now) except *


cdef class Requester(Linked):
    cdef Arbiter arbiter

    cdef long long earliest(self, long long cycle) except -2
    # hot
    cdef int wake(self, long long cycle) except -1


@cython.final
cdef class Cycle(LinkedList):
    cdef long long number
    cdef Cycle following


cdef class CycleQueue(Component):
    cdef readonly long long period_ps
    cdef list _places
    cdef list _free
    cdef LinkedList _active

    # hot
    @cython.locals(cycle=Cycle)
    cpdef int add(self, Requester channel, long long number) except -1
    @cython.locals(cycle=Cycle, place=cython.Py_ssize_t)
    cdef Cycle _begin(self, long long number)
    # hot
    @cython.locals(
        cycle=Cycle, active=LinkedList, now=cython.longlong, item=Linked, channel=Requester,
        arbiter=Arbiter,
    )
    cpdef void proceed(self, int step, object subject) except *
    @cython.locals(place=cython.Py_ssize_t, other=Cycle)
    cdef void _remove(self, Cycle cycle) except *
