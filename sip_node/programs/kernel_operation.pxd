cimport cython

from sip_node.chip.completion cimport AnyCompletion
from sip_node.kernel.calendar cimport Calendar


cdef class _Extents:
    cdef readonly Py_ssize_t count
    cdef long long _first, _behind
    cdef list _each

    @cython.locals(first=cython.longlong, behind=cython.longlong)
    cdef bint overlaps(self, long long start, long long end) except -1


cdef class InFlight:
    cdef OpenOperations _operations
    cdef readonly object call, store, peer, earliest_end_ps
    cdef public object result, message
    cdef public tuple joins
    cdef readonly AnyCompletion done
    cdef _Extents written, used
    cdef object _reads, _made


cdef class OpenOperations:
    cdef object _issuer, _order, _calls
    cdef Calendar _engine
    cdef dict _open, _over
    cdef readonly object memory

    cdef int started(self, InFlight operation, object memory) except -1
    @cython.locals(each=InFlight, start=cython.longlong, end=cython.longlong)
    cdef list _writers_of(self, object values)
    @cython.locals(each=InFlight, start=cython.longlong, end=cython.longlong)
    cdef list _users_of(self, object value)
    cpdef await_end(self, InFlight operation)
    cpdef bint ends(self, InFlight operation) except -1
    @cython.locals(done=AnyCompletion)
    cdef bint _closes(self, InFlight operation) except -1
    cpdef int _waited(self, InFlight operation, long long begin_ps) except -1


cdef class Operations(OpenOperations):
    cdef object _wait
