"""Bytes that grow, in C: see byte_buffer.pyx."""


cdef class ByteBuffer:
    cdef char *start
    cdef Py_ssize_t size
    cdef Py_ssize_t capacity

    cdef int grow(self, Py_ssize_t nbytes) except -1 nogil
    cdef object view(self, Py_ssize_t first)
    cdef bytes taken(self)
    cdef int clear(self) except -1 nogil
    cdef int trim(self) except -1

    cdef inline int reserve(self, Py_ssize_t nbytes) except -1 nogil:
        """Make room for as many bytes behind the others."""
        return 0 if self.size + nbytes <= self.capacity else self.grow(nbytes)
