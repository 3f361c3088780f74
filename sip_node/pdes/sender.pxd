cimport cython

from sip_node.kernel cimport exact
from sip_node.kernel.containers.int_array cimport IntArray


cdef class Sender:
    cdef IntArray in_flight_ps
    cdef long long _path_ps, _quiet_ps

    cpdef int departed(self, long long entrance_ps) except -1
    cpdef int entered(self, long long entrance_ps) except -1
    @cython.locals(earliest_ps=cython.longlong, index=cython.Py_ssize_t)
    cpdef long long earliest_send_ps(self, long long base_ps) except -1
