"""Blocks of memory outside of Python's objects; `PyMem_Free` frees them."""

from cpython.mem cimport PyMem_Realloc


cdef inline void *resized(void *block, size_t nbytes) except NULL:
    """A block with another size, or a new one in place of NULL."""
    cdef void *found = PyMem_Realloc(block, nbytes)
    if not found:
        raise MemoryError
    return found
