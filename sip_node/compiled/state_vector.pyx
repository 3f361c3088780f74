"""The state of products between two events as a vector of integers of four kinds.

Two states recur if the later one is the earlier one at another time: what decides the future is
equal, with all times relative to the present. Then what happens after the later state is what
happened after the earlier one, as long as nothing else takes part. One period later a time is the
period later, and a sum has grown by the same amount again.
"""

from cpython.mem cimport PyMem_Free, PyMem_Realloc
from sip_node.compiled.times cimport NEVER_PS

cdef enum:
    FIRST_CAPACITY = 512


cdef class StateVector:
    """A state at `now_ps`, when `ids` events have been scheduled since the start of the run."""

    def __init__(self, long long now_ps, long long ids):
        self.now_ps, self.ids = now_ps, ids

    def __dealloc__(self):
        PyMem_Free(self.values)
        PyMem_Free(self.kinds)

    cdef int append(self, long long value, Kind kind) except -1:
        cdef void *block
        cdef Py_ssize_t capacity
        if self.size == self.capacity:
            capacity = 2 * self.capacity if self.capacity else FIRST_CAPACITY
            block = PyMem_Realloc(self.values, capacity * sizeof(long long))
            if not block:
                raise MemoryError
            self.values = <long long *> block
            block = PyMem_Realloc(self.kinds, capacity)
            if not block:
                raise MemoryError
            self.kinds, self.capacity = <char *> block, capacity
        # No time: a stamp that is not set, or an event that is not awaited.
        if kind == TIME and not 0 < value < NEVER_PS:
            kind = SAME
        self.values[self.size], self.kinds[self.size] = value, kind
        self.size += 1
        return 0

    def key(self):
        """Equal for states that recur."""
        cdef unsigned long long key = self.size, value
        cdef Py_ssize_t index
        for index in range(self.size):
            if self.kinds[index] == SAME:
                value = self.values[index]
            elif self.kinds[index] == TIME:
                value = self.values[index] - self.now_ps
            elif self.kinds[index] == FREE:
                value = max(0, self.values[index] - self.now_ps)
            else:
                continue
            # The mix of FNV-1a, on words.
            key = (key ^ value) * 1099511628211ULL
        return key

    def recurs(self, StateVector earlier not None):
        """Whether this is the state `earlier` at another time."""
        cdef long long passed_ps = self.now_ps - earlier.now_ps, change
        cdef Py_ssize_t index
        cdef int kind
        if self.size != earlier.size:
            return False
        for index in range(self.size):
            kind = self.kinds[index]
            if kind != earlier.kinds[index]:
                return False
            change = self.values[index] - earlier.values[index]
            if kind == SAME and change:
                return False
            if kind == TIME and change != passed_ps:
                return False
            if kind == FREE and change != passed_ps:
                # Idle in both states; one that serves in between is busy until another time.
                if max(self.values[index] - self.now_ps, 0) != max(
                    earlier.values[index] - earlier.now_ps, 0
                ):
                    return False
                if change:
                    return False
        return True
