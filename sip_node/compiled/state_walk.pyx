"""A walk over the state of some objects, which reads it or moves it by whole periods.

A state is a vector of integers of four kinds. Two states recur if the later one is the earlier one
at another time: what decides the future is equal, with all times relative to the present. Then what
happens after the later state is what happened after the earlier one, as long as nothing else takes
part. One period later a time is the period later, and a sum has grown by the same amount again.

The walk comes to every field in one order, which follows from the state alone. So equal states give
equal vectors, and the same walk writes the values of a later period back. An object to which
several others refer has the number of its first visit.
"""

cimport cython

from sip_node.kernel.exact cimport NEVER_PS


class NotClosed(Exception):
    """Something else uses, or waits for, a resource of what is walked over."""


cdef class StateVector:
    """A state at `now_ps`, when `ids` events have been scheduled since the start of the run."""

    def __init__(self, long long now_ps, long long ids):
        self.now_ps, self.ids = now_ps, ids
        self.values, self.kinds = IntArray(), IntArray()

    cdef int append(self, long long value, Kind kind) except -1:
        # No time: a stamp that is not set, or an event that is not awaited.
        if kind == TIME and not 0 < value < NEVER_PS:
            kind = SAME
        self.values.append(value)
        return self.kinds.append(kind)

    # FNV is defined modulo 2^64.
    @cython.overflowcheck(False)
    def key(self):
        """Equal for states that recur."""
        cdef unsigned long long key = self.values.size, value
        cdef Py_ssize_t index
        cdef long long kind
        for index in range(self.values.size):
            kind, value = self.kinds.values[index], self.values.values[index]
            if kind == COUNT:
                continue
            if kind == TIME:
                value -= self.now_ps
            elif kind == FREE:
                value = max(0, <long long> value - self.now_ps)
            # The mix of FNV-1a, on words.
            key = (key ^ value) * 1099511628211ULL
        return key

    def recurs(self, StateVector earlier not None):
        """Whether this is the state `earlier` at another time."""
        cdef long long passed_ps = self.now_ps - earlier.now_ps, change
        cdef long long kind, value
        cdef Py_ssize_t index
        if self.values.size != earlier.values.size:
            return False
        for index in range(self.values.size):
            kind, value = self.kinds.values[index], self.values.values[index]
            if kind != earlier.kinds.values[index]:
                return False
            change = value - earlier.values.values[index]
            if kind == SAME and change:
                return False
            if kind == TIME and change != passed_ps:
                return False
            if kind == FREE and change != passed_ps:
                # Idle in both states; one that serves in between is busy until another time.
                if change or value > earlier.now_ps:
                    return False
        return True


cdef class StateWalk:
    """The mechanics of a walk; a derived class comes to the fields of its objects."""

    cdef int begin_to_read(self, long long now_ps, long long ids) except -1:
        """Note the values of the fields in a new vector."""
        self.first = self.second = None
        self.state = StateVector(now_ps, ids)
        self.numbers = {}
        return 0

    cdef int begin_to_shift(
        self, StateVector first, StateVector second, long long periods
    ) except -1:
        """Move the fields by `periods` times the period from `first` to `second`."""
        self.first, self.second, self.periods, self.place = first, second, periods, 0
        self.ids = second.ids - first.ids
        self.numbers = {}
        return 0

    cdef long long value(self, long long value, Kind kind) except? -1:
        """Come to a field: note its value, or return its value of later."""
        cdef Py_ssize_t place = self.place
        if self.second is None:
            self.state.append(value, kind)
            return value
        self.place = place + 1
        return value + self.periods * (
            self.second.values.values[place] - self.first.values.values[place]
        )

    cdef int same(self, long long value) except -1:
        self.value(value, SAME)
        return 0

    cdef bint enters(self, object each) except -1:
        """Whether an object is visited for the first time; notes its number."""
        cdef size_t identity = <size_t> <void *> each
        number = self.numbers.get(identity)
        if number is not None:
            self.same(number)
            return False
        self.numbers[identity] = len(self.numbers)
        self.same(-1)
        return True

    cdef int server(self, FifoServer server) except -1:
        if not self.enters(server):
            return 0
        server.free_ps = self.value(server.free_ps, FREE)
        server.busy_ps = self.value(server.busy_ps, COUNT)
        server.queued_ps = self.value(server.queued_ps, COUNT)
        server.nbytes = self.value(server.nbytes, COUNT)
        return 0
