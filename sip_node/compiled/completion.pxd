"""Results that will exist at some simulated time, in C: see completion.pyx."""


cdef class Continuation:
    cdef int resume(self, Completion done) except -1


cdef class Completion:
    cdef readonly bint done
    cdef readonly object error
    cdef object result
    cdef object callback
    cdef list others

    cdef int succeed(self, object value) except -1
    cdef int attach(self, object callback) except -1
    cdef int finish(self) except -1


cpdef Completion completed(object value)
cpdef Completion all_of(completions)
