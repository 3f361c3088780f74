"""The event calendar in C: see calendar.pyx."""

from sip_node.chip.completion cimport Continuation
from sip_node.kernel.exact cimport int128

cpdef enum:
    ARRIVALS_FIRST = -1
    NORMAL = 1
    AFTER_ALL = 2

cdef enum:
    # Of the order of a key, whose upper bits are the priority.
    ID_BITS = 48


cdef struct Event:
    # What the core does at a time: actor `actor` acts, with the values of the event.
    int actor
    # How far it is: the index of a stage of a route, or which of its steps an actor takes.
    int step
    # Data in C of the actor, which keeps it alive.
    void *context
    long long tail_ps
    long long nbytes


cdef struct Key:
    # The place of an event in the total order; its values are in slot `slot`.
    long long time_ps
    unsigned long long order
    unsigned int slot


cdef inline int128 place(Key key) noexcept nogil:
    """The place of an event in the total order, as one number."""
    return (<int128> key.time_ps << 64) | key.order


cdef inline int precedes(Key first, Key second) noexcept nogil:
    # One comparison and no branch: which of two keys is lower, no processor predicts.
    return place(first) < place(second)


cdef class Actor:
    cdef int act(self, Event event, object subject) except -1


cdef class Calendar:
    cdef public long long now_ps
    cdef public long long events
    # The events of the run of the engine that were executed ahead.
    cdef public long long ahead
    # The id of the next event, of a call or of SimPy.
    cdef long long following
    # Called between two events after `mark`, with the bound of the run; returns the number of
    # events that it has executed ahead. None: marks have no effect.
    cdef public object at_mark
    cdef bint is_marked, is_held
    # Takes (time of the insertion, time, step) of each event of the core; None: no one needs it.
    cdef public list inserted
    cdef list actors
    cdef list simpy_queue
    cdef bint is_rescheduled
    cdef Key *heap
    cdef unsigned int size
    cdef unsigned int capacity
    cdef Event *values
    cdef unsigned int *free_slots
    cdef unsigned int free_count
    cdef list subjects

    cpdef long long next_ps(self) except -1
    cdef int enlist(self, Actor actor) except -1
    cdef int insert(self, long long time_ps, int priority, Event event, object subject) except -1
    cdef int resume_at(self, long long time_ps, Continuation continuation) except -1
    cdef int grow(self) except -1
    cdef int mark(self) except -1
    cdef int execute_first(self) except -1
    cdef Key first_of_simpy(self) except *
