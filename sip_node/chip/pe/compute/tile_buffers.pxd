cimport cython


cdef class FreeList:
    cdef readonly int count, filled
    cdef int first
    cdef list order, _is_free, _when_freed

    # hot
    cpdef int take(self) except -1
    @cython.locals(is_taken=cython.bint)
    cpdef void free(self, int index) except *
