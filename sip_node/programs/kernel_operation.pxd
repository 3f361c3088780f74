cimport cython
from sip_node.programs.kernel_issue cimport CommandIssuer
from sip_node.programs.kernel_wait cimport KernelWait


cdef class _Extents:
    cdef object _each
    cdef readonly long long first, behind


cdef class Operations:
    cdef CommandIssuer _issuer
    cdef KernelWait _wait
    cdef dict _open, _over
    cdef readonly object memory

    cdef list _writers_of(self, object values)
    cdef list _users_of(self, object value)
    cdef bint _closes(self, object operation) except -1
    cpdef started(self, object operation, object memory)
    cpdef await_end(self, object operation)
