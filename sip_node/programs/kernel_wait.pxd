from sip_node.chip.pe.queue_table cimport QueueState, QueueTable
from sip_node.kernel.calendar cimport Calendar
from sip_node.programs.kernel_receive cimport Receives
from sip_node.programs.program cimport AnyProgram


cdef class KernelQueues:
    cdef readonly QueueTable table
    cdef object _faults
    cdef readonly bint excluded
    cdef bint _in_grid
    cdef Calendar _engine

    cpdef QueueState outgoing(self, str direction)
    cpdef int check_incoming(self, str direction) except -1
    cpdef int check_peer(self, str operation, str direction) except -1
    cpdef object on_peer(self, str operation, str direction, str line=*)
    cdef QueueState _queue(self, str direction)


cdef class KernelWait:
    cdef object _chip, _coordinates, _launch
    cdef AnyProgram _program
    cdef QueueTable _table
    cdef public Receives receives
    cdef public object current
    cdef object _missing
    cdef public long long leaving

    cpdef int begin(self, object wait) except -1
    cpdef int end(self) except -1
