"""Bytes that grow, in C, until they are cleared."""

from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from cpython.memoryview cimport PyMemoryView_FromMemory


cdef class ByteBuffer:
    """The base of classes that add values of a format."""

    def __dealloc__(self):
        PyMem_RawFree(self.start)

    cdef int grow(self, Py_ssize_t nbytes) except -1 nogil:
        """Make room for as many bytes behind the others."""
        cdef Py_ssize_t capacity
        cdef char *start
        capacity = max(2 * self.capacity, self.size + nbytes, 1 << 12)
        start = <char *> PyMem_RawRealloc(self.start, capacity)
        if start is NULL:
            raise MemoryError
        self.start, self.capacity = start, capacity
        return 0

    cdef object view(self, Py_ssize_t first):
        """The bytes from number `first` on; valid until the next call."""
        return PyMemoryView_FromMemory(self.start + first, self.size - first, PyBUF_READ)

    cdef bytes taken(self):
        """The bytes, which are cleared."""
        cdef bytes taken = PyBytes_FromStringAndSize(self.start, self.size)
        self.clear()
        return taken

    cdef int clear(self) except -1 nogil:
        self.size = 0
        return 0

    cdef int trim(self) except -1:
        """Free the room behind the bytes."""
        cdef char *start = <char *> PyMem_RawRealloc(self.start, self.size)
        # Less memory is never refused; of no bytes, there may be no block.
        if start is not NULL or not self.size:
            self.start, self.capacity = start, self.size
        return 0
