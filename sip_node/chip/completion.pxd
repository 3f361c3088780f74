cimport cython


cdef class Continuation:
    cdef int resume(self, AnyCompletion done) except -1


@cython.freelist(256)
cdef class AnyCompletion:
    cdef readonly bint done
    cdef readonly object error
    cdef object result, _callback
    cdef list _others

    cpdef int complete(self, object value) except -1
    cpdef int fail(self, object error) except -1
    cpdef int then(self, object callback) except -1
    cdef int _finish(self) except -1


@cython.locals(continuation=Continuation)
cdef int _call(object callback, AnyCompletion done) except -1
cpdef AnyCompletion completed(object value)


cdef class _AllOf(Continuation):
    cdef AnyCompletion joint
    cdef list completions
    cdef Py_ssize_t left


@cython.locals(completion=AnyCompletion)
cpdef AnyCompletion all_of(object completions)
