cimport cython


cdef class KernelScratch:
    cdef long long _scratch, _scratch_bytes, _used
    cdef object _faults

    @cython.locals(begin=cython.longlong)
    cpdef object new(self, object shape, object dtype)
    cpdef long long used_bytes(self) except -1
    cpdef int release_from(self, long long address) except -1
    cpdef int release(self) except -1


cdef class KernelMemory(KernelScratch):
    cdef object _mmu, _stored

    cpdef list transfers(self, object block, object pointer, object strides)
    cpdef list translate(self, object pointer, object shape, object strides)
    cdef list _mapped(self, object address, object nbytes)
    cdef list _row_by_row(self, object block, object pointer, object strides)
    cdef list _rows_in_extents(self, object pointer, object rows, long long count)
