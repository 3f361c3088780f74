from sip_node.chip.memory.access cimport Access
from sip_node.kernel.containers.int_array cimport IntArray


cdef class Shares:
    cdef readonly object each
    cdef readonly IntArray needed


cdef class AccessChannels:
    cdef public list channels
    cdef long long start_ps
    cdef long long end_ps

    cdef Shares split(self, Access access)
    cdef long long free_ps(self, long long index) except -1
    cdef long long serve(
        self, Shares shares, long long head_ps, long long tail_ps, bint writes, long long waited_ps
    ) except -1


cdef class ForeignChannels(AccessChannels):
    cdef object _memory
