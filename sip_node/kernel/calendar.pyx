"""An event calendar in C, merged with the queue of a `simpy.Environment` by one key.

Every event has a key (time, priority, id). The id comes from one counter for both queues, so keys
are unique, and events at equal time and priority run in the order in which they were scheduled.
Events of the core are in a binary heap of keys; what an event does is a struct in a slot beside it.
An `Actor` is what it calls, with the struct and one Python object, usually a packet. Calls of
Python functions are events of the same heap. Events of SimPy's classes are in SimPy's own queue.

The interpreter (calendar.py) makes the same insertions in the same order, so every event has the
same key there, and every tie has the same outcome.

    loop:  key  = the first key of SimPy's queue, or the bound of the run
           while the first key of the heap < key:  execute the first event of the heap
           execute SimPy's first event

In the inner loop SimPy's queue is read again only after `schedule`, through which all classes of
SimPy insert their events.
"""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.mem cimport PyMem_Free
from heapq import heappush
from sys import maxsize

from simpy import Environment
from simpy.core import EmptySchedule, Infinity

from runtime.core.compiled.memory_blocks cimport resized
from sip_node.kernel.exact cimport NEVER_PS

cdef enum:
    # The actor of calls of Python functions: the subject is (function, arguments).
    CALL = 0
    # The actor of continuations: `act` resumes the subject.
    RESUME = 1
    FIRST_CAPACITY = 64
    # The priority is in the upper 16 bits of the order, so that one comparison covers it.
    PRIORITY_BIAS = 0x8000

cdef object environment_step = Environment.step


cdef inline unsigned long long order_of(int priority, long long number) noexcept nogil:
    cdef unsigned long long biased = priority + PRIORITY_BIAS
    return (biased << ID_BITS) | <unsigned long long> number


cdef int check_priority(int priority) except -1:
    if not -PRIORITY_BIAS <= priority < PRIORITY_BIAS:
        raise OverflowError(f"priority {priority}: the key of an event holds 16 bits of it")
    return 0


cdef class Actor:
    """An object that executes events of the core."""

    cdef int act(self, Event event, object subject) except -1:
        """Execute an event of this actor; `subject` is the object that it was inserted with."""
        raise NotImplementedError(type(self).__name__)


cdef class Resumptions(Actor):
    """The actor of objects that exist for one operation, and are no actors: these are never freed.
    """

    cdef int act(self, Event event, object subject) except -1:
        return (<Continuation> subject).resume(None)


cdef class PendingEvent:
    """An event that is to come; the actor of a call is None."""

    cdef Key key
    cdef Event event
    cdef readonly object actor
    cdef readonly object subject

    def __lt__(self, PendingEvent other not None):
        return precedes(self.key, other.key)

    @property
    def time_ps(self):
        """The time of the event."""
        return self.key.time_ps

    @property
    def step(self):
        """The step of its actor."""
        return self.event.step

    @property
    def tail_ps(self):
        """The time of the tail of a packet."""
        return self.event.tail_ps


cdef class Calendar:
    """The calls of calendar.py; a C class inserts its events by `insert`."""

    def __cinit__(self):
        self.actors = [None, Resumptions()]
        self.subjects = []
        self.simpy_queue = []

    def __init__(self):
        # Every calendar is an engine, and so an environment of SimPy.
        Environment.__init__(self)
        self.simpy_queue = self._queue

    def __dealloc__(self):
        PyMem_Free(self.heap)
        PyMem_Free(self.values)
        PyMem_Free(self.free_slots)

    @property
    def _now(self):
        # SimPy's clock is a view of the clock here: the two cannot differ.
        return self.now_ps

    @_now.setter
    def _now(self, long long time_ps):
        self.now_ps = time_ps

    def at(self, long long time_ps, function, *args, int priority=NORMAL):
        cdef Event event
        assert time_ps >= self.now_ps, f"{function} at {time_ps} ps, now is {self.now_ps} ps"
        check_priority(priority)
        event.actor = CALL
        self.insert(time_ps, priority, event, (function, args))

    def schedule(self, event, priority=NORMAL, delay=0):
        if not isinstance(delay, int):
            raise TypeError(f"a delay of {delay!r} ps: simulated time is an int of picoseconds")
        check_priority(priority)
        # An integer of Python, which does not overflow.
        time_ps = (<object> self.now_ps) + delay
        if time_ps >= NEVER_PS:
            raise OverflowError(f"an event at {time_ps} ps: a run ends before {NEVER_PS} ps")
        heappush(self.simpy_queue, (time_ps, priority, self.following, event))
        self.following += 1
        self.is_rescheduled = True

    def peek(self):
        """The time of the next event, infinity if there is none."""
        cdef long long next_ps = self.next_ps()
        return Infinity if next_ps == NEVER_PS else next_ps

    cpdef long long next_ps(self) except -1:
        cdef long long next_ps = self.heap[0].time_ps if self.size else NEVER_PS
        if PyList_GET_SIZE(self.simpy_queue):
            next_ps = min(next_ps, self.first_of_simpy().time_ps)
        return next_ps

    def step(self):
        if PyList_GET_SIZE(self.simpy_queue) and not (
            self.size and precedes(self.heap[0], self.first_of_simpy())
        ):
            environment_step(self)
        elif self.size:
            self.execute_first()
        else:
            raise EmptySchedule

    def run_before(self, long long bound_ps, long long at_most=maxsize):
        cdef Key end, bound
        cdef bint simpy_follows
        cdef long long count = 0
        # Lower than the key of any event at the bound.
        bound.time_ps, bound.order, bound.slot = bound_ps, 0, 0
        while not self.is_held:
            if self.is_marked:
                self.is_marked = False
                count += <long long> self.at_mark(bound_ps)
            end, simpy_follows = bound, False
            if PyList_GET_SIZE(self.simpy_queue):
                end = self.first_of_simpy()
                simpy_follows = precedes(end, bound)
                if not simpy_follows:
                    end = bound
            self.is_rescheduled = False
            while self.size and precedes(self.heap[0], end) and count < at_most:
                self.execute_first()
                count += 1
                if self.is_rescheduled:
                    break
            else:
                if not simpy_follows or count >= at_most:
                    break
                environment_step(self)
                count += 1
        self.is_held = False
        count += self.ahead
        self.ahead = 0
        self.events += count
        return count

    def hold(self):
        """End the run behind the event that is executed, before its bound."""
        self.is_held = self.is_rescheduled = True

    @property
    def scheduled(self):
        """The number of events that have been scheduled."""
        return self.following

    def pending(self, int actor):
        """(time, step, tail, subject) of every event, in their order, if all are of one actor;
        None where an event is another one.
        """
        cdef Py_ssize_t index
        for index in range(self.size):
            if self.values[self.heap[index].slot].actor != actor:
                return None
        events = self.events_to_come()
        if events is None:
            return None
        return [(each.time_ps, each.step, each.tail_ps, each.subject) for each in events]

    def events_to_come(self):
        """Every event, in their order; None where one is of SimPy."""
        cdef Py_ssize_t index
        cdef Key key
        cdef Event event
        cdef PendingEvent pending
        if PyList_GET_SIZE(self.simpy_queue):
            return None
        events = []
        for index in range(self.size):
            key = self.heap[index]
            event = self.values[key.slot]
            pending = PendingEvent.__new__(PendingEvent)
            pending.key, pending.event = key, event
            pending.actor, pending.subject = self.actors[event.actor], self.subjects[key.slot]
            events.append(pending)
        events.sort()
        return events

    def withdraw(self):
        """Remove all events."""
        cdef unsigned int index, slot
        for index in range(self.size):
            slot = self.heap[index].slot
            self.subjects[slot] = None
            self.free_slots[self.free_count] = slot
            self.free_count += 1
        self.size = 0

    def put_back(self, list events not None):
        """Insert events that were withdrawn, each where it was in the order."""
        cdef PendingEvent each
        cdef unsigned long long order
        cdef long long following = self.following
        for each in events:
            order = each.key.order
            self.following = <long long> (order & ((1ULL << ID_BITS) - 1))
            self.insert(
                each.key.time_ps, <int> (order >> ID_BITS) - PRIORITY_BIAS, each.event, each.subject
            )
        self.following = following

    cdef int enlist(self, Actor actor) except -1:
        """The number by which events name an actor."""
        self.actors.append(actor)
        return len(self.actors) - 1

    cdef int insert(self, long long time_ps, int priority, Event event, object subject) except -1:
        """Insert an event; the calendar holds `subject` until it is executed."""
        cdef unsigned int slot, child, parent
        cdef Key key
        if time_ps >= NEVER_PS:
            raise OverflowError(f"an event at {time_ps} ps: a run ends before {NEVER_PS} ps")
        if self.inserted is not None:
            self.inserted.append((self.now_ps, time_ps, event.step))
        if not self.free_count:
            self.grow()
        self.free_count -= 1
        slot = self.free_slots[self.free_count]
        self.values[slot] = event
        self.subjects[slot] = subject
        key.time_ps, key.slot = time_ps, slot
        key.order = order_of(priority, self.following)
        self.following += 1
        # Move the gap at the end of the heap up to the place of the new key.
        child = self.size
        self.size += 1
        while child:
            parent = (child - 1) >> 1
            if not precedes(key, self.heap[parent]):
                break
            self.heap[child] = self.heap[parent]
            child = parent
        self.heap[child] = key
        return 0

    cdef int resume_at(self, long long time_ps, Continuation continuation) except -1:
        """Resume a continuation, without a result, at a time."""
        cdef Event event
        event.actor = RESUME
        return self.insert(time_ps, NORMAL, event, continuation)

    cdef int mark(self) except -1:
        """Call `at_mark` after the event that is executed, when nothing is half done."""
        if self.at_mark is not None:
            # As after a new event of SimPy, the inner loop of `run_before` ends.
            self.is_marked = self.is_rescheduled = True
        return 0

    cdef int grow(self) except -1:
        """Double the room for events."""
        cdef unsigned int capacity = 2 * self.capacity if self.capacity else FIRST_CAPACITY
        cdef unsigned int slot
        # One by one: what has been moved already is not lost if a later one fails.
        self.heap = <Key *> resized(self.heap, capacity * sizeof(Key))
        self.values = <Event *> resized(self.values, capacity * sizeof(Event))
        self.free_slots = <unsigned int *> resized(
            self.free_slots, capacity * sizeof(unsigned int)
        )
        self.subjects.extend([None] * (capacity - self.capacity))
        for slot in range(self.capacity, capacity):
            self.free_slots[self.free_count] = slot
            self.free_count += 1
        self.capacity = capacity
        return 0

    cdef int execute_first(self) except -1:
        """Remove the first event of the heap and execute it."""
        cdef Key first = self.heap[0]
        cdef Key last
        cdef unsigned int gap = 0, child
        cdef Event event
        # The gap sinks to the end along the smaller children; the last key then rises from there.
        # It came from the end, so it rarely rises: half the comparisons of sinking it.
        self.size -= 1
        last = self.heap[self.size]
        child = 1
        while child + 1 < self.size:
            child += precedes(self.heap[child + 1], self.heap[child])
            self.heap[gap] = self.heap[child]
            gap = child
            child = 2 * gap + 1
        if child < self.size:
            self.heap[gap] = self.heap[child]
            gap = child
        while gap and precedes(last, self.heap[(gap - 1) >> 1]):
            self.heap[gap] = self.heap[(gap - 1) >> 1]
            gap = (gap - 1) >> 1
        self.heap[gap] = last
        # Free the slot before the event runs: an event that it inserts may take it.
        event = self.values[first.slot]
        subject = self.subjects[first.slot]
        self.subjects[first.slot] = None
        self.free_slots[self.free_count] = first.slot
        self.free_count += 1
        self.now_ps = first.time_ps
        if event.actor == CALL:
            (<object> (<tuple> subject)[0])(*<tuple> (<tuple> subject)[1])
        else:
            (<Actor> PyList_GET_ITEM(self.actors, event.actor)).act(event, subject)
        return 0

    cdef Key first_of_simpy(self) except *:
        """The key of the first event in SimPy's queue, which has one."""
        cdef Key key
        cdef tuple entry = <tuple> self.simpy_queue[0]
        key.time_ps, key.slot = entry[0], 0
        key.order = order_of(entry[1], entry[2])
        return key
