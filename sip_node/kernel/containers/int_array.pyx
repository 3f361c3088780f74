"""Integers of 64 bits in a growing array, in C. Its version in Python is `int_array.py`."""

from cpython.mem cimport PyMem_Free
from libc.string cimport memmove

from runtime.core.compiled.memory_blocks cimport resized


cdef class IntArray:
    """`values[0]` to `values[size - 1]`."""

    def __dealloc__(self):
        PyMem_Free(self.values)

    cpdef Py_ssize_t first_from(self, long long value) noexcept:
        cdef Py_ssize_t low = 0, high = self.size, middle
        while low < high:
            middle = (low + high) // 2
            if self.values[middle] < value:
                low = middle + 1
            else:
                high = middle
        return low

    cpdef int append(self, long long value) except -1:
        if self.size == self.capacity:
            self.grow()
        self.values[self.size] = value
        self.size += 1
        return 0

    cpdef bint remove(self, long long value) noexcept:
        cdef Py_ssize_t index = 0
        while index < self.size and self.values[index] != value:
            index += 1
        if index == self.size:
            return False
        self.size -= 1
        memmove(
            &self.values[index], &self.values[index + 1], (self.size - index) * sizeof(long long)
        )
        return True

    cpdef int replace(self, Py_ssize_t first, Py_ssize_t last, long long value) except -1:
        cdef Py_ssize_t size = self.size + 1 - (last - first)
        if size > self.capacity:
            self.grow()
        memmove(
            &self.values[first + 1], &self.values[last], (self.size - last) * sizeof(long long)
        )
        self.values[first], self.size = value, size
        return 0

    cdef int grow(self) except -1:
        cdef Py_ssize_t capacity = 2 * self.capacity + 8
        self.values = <long long *> resized(self.values, capacity * sizeof(long long))
        self.capacity = capacity
        return 0

    cdef int trim(self) except -1:
        """Free the room behind the integers."""
        self.capacity = max(self.size, 1)
        self.values = <long long *> resized(self.values, self.capacity * sizeof(long long))
        return 0
