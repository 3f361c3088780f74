cimport cython

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.chip.records.op_log cimport OpLog
from sip_node.chip.pe cimport queue_table as queue_states
from sip_node.chip.pe.queue_table cimport QueueState
from sip_node.kernel cimport records
from sip_node.kernel.component cimport Component

cdef int _PROCESSED


cdef class RingsByAddress:
    cdef list _bases
    cdef dict _queues

    @cython.locals(end=cython.longlong, before=cython.longlong, other=QueueState)
    cpdef QueueState add(self, long long base, QueueState queue)
    @cython.locals(base=cython.longlong, queue=QueueState)
    cpdef QueueState owner(self, long long address)
    @cython.locals(after=Py_ssize_t)
    cdef long long _last_from(self, long long address) except -2


cdef class PeIpcq(Component):
    cdef readonly dict _tables
    cdef public long long _overhead_ps
    cdef readonly object sends
    cdef object _context
    cdef OpLog _log
    cdef RingsByAddress _receive_rings, _send_rings
    cdef int _at_cube, _at_pe

    @cython.locals(packet=Packet, transfer=FabricTransfer)
    cpdef void proceed(self, int step, object subject) except *
    @cython.locals(queue=QueueState)
    cdef int _arrived(self, FabricTransfer slot) except -1
    cdef QueueState _owner(self, RingsByAddress rings, long long address)
