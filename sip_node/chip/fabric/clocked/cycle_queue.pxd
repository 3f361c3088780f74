cimport cython

from sip_node.kernel cimport events
from sip_node.kernel.containers cimport linked_list as lists
from sip_node.kernel.component cimport Component
from sip_node.kernel.containers.linked_list cimport LinkedGroup, Linked, LinkedList, LinkedMember

cdef int DORMANT, _PLACES


cdef class Arbiter(LinkedGroup):
    cdef CycleQueue queue

    cpdef void arbitrate(self, long long now) except *


cdef class Requester(LinkedMember):
    cdef CycleQueue queue

    cdef int request_from(self, Arbiter arbiter) except -1
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
    cdef list _held
    cdef LinkedList _active
    cdef Cycle _latest

    cdef int hold(self, Linked item) except -1
    # hot
    @cython.locals(cycle=Cycle)
    cpdef int add(self, Requester channel, long long number) except -1
    # hot
    @cython.locals(cycle=Cycle)
    cdef Cycle _cycle(self, long long number)
    @cython.locals(cycle=Cycle, place=cython.Py_ssize_t)
    cdef Cycle _begin(self, long long number)
    # hot
    @cython.locals(
        cycle=Cycle, active=LinkedList, now=cython.longlong, item=Linked, arbiter=Arbiter
    )
    cpdef void proceed(self, int step, object subject) except *
    @cython.locals(place=cython.Py_ssize_t, other=Cycle)
    cdef int _remove(self, Cycle cycle) except -1
