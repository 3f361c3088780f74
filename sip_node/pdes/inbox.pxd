cimport cython

from sip_node.kernel.containers.arrival_queue cimport ArrivalQueue
from sip_node.kernel.component cimport Component


cdef class Inbox(Component):
    cdef public long long received
    cdef object _receiver
    cdef ArrivalQueue _packets
    cdef set _due

    cpdef int put(
        self, long long time_ps, long long source, long long seq, long long tail_ps, object packet
    ) except -1
    @cython.locals(now_ps=cython.longlong, packets=ArrivalQueue)
    cpdef void proceed(self, int step, object subject) except *
    cpdef receive(self, object packet, long long tail_ps, long long source)
