"""Integers of 64 bits in a growing array, in C: see int_array.pyx."""

cimport cython


@cython.final
cdef class IntArray:
    cdef long long *values
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t capacity

    cpdef Py_ssize_t first_from(self, long long value) noexcept
    cpdef int append(self, long long value) except -1
    cpdef bint remove(self, long long value) noexcept
    cpdef int replace(self, Py_ssize_t first, Py_ssize_t last, long long value) except -1
    cdef int grow(self) except -1
    cdef int trim(self) except -1
