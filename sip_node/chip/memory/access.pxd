from sip_node.chip.records.packet_train cimport PacketTrain
from sip_node.kernel.component cimport Component


cdef class Access:
    cdef public object message, rows
    cdef public long long offset, nbytes, arrived_ps, tail_ps, begin
    cdef public bint writes
    cdef public PacketTrain train
    cdef public long long submitted_ps
    cdef object _served

    cpdef void begun(self, long long first_ps, long long start_ps, long long end_ps) except *


cdef class AccessService(Component):
    cdef readonly long long turns

    cpdef void submit(self, Access access) except *


cdef class ForeignService(AccessService):
    cdef object _service


cpdef AccessService service_of(object service)
