cimport cython

from sip_node.chip.completion cimport AnyCompletion, Continuation
from sip_node.chip.pe.queue_table cimport QueueState, QueueTable, Slot
from sip_node.chip.records.op_log cimport OpLog
from sip_node.kernel.calendar cimport Calendar
from sip_node.kernel cimport events
from sip_node.programs.kept_slots cimport KeptSlots, SlotTargets


cdef class Receives


cdef class Receive(Continuation):
    cdef readonly str direction
    cdef readonly object dtype, targets
    cdef readonly str line
    cdef readonly bint in_tcm, in_place
    cdef readonly long long kept
    cdef readonly AnyCompletion done
    cdef public object state
    cdef readonly str source
    cdef public long long step
    cdef object parts
    cdef list received
    cdef QueueState queue
    cdef Slot slot
    cdef bint divided
    cdef Receives steps

    cpdef int enter(self, object state) except -1


cdef class Receives:
    cdef Calendar _engine
    cdef object _dma
    cdef OpLog _log
    cdef QueueTable _queues
    cdef object _read_tcm, _transfer
    cdef long long _issue_ps
    cdef object _faults, _trace
    cdef str _call
    cdef list _posted
    cdef dict _matched
    cdef KeptSlots _kept
    cdef Py_ssize_t _turn

    @cython.locals(receive=Receive)
    cpdef _slot_filled(self, str direction)
    @cython.locals(receive=Receive)
    cdef _match(self)
    cdef str _full_direction(self, Receive receive)
    cdef bint _has_message(self, str direction) except -1
    cdef _begin(self, Receive receive)
    @cython.locals(queue=QueueState, slot=Slot, targets=SlotTargets)
    cdef _keep_slots(self, Receive receive)
    @cython.locals(
        slot=Slot, targets=SlotTargets, address=cython.longlong, joint=AnyCompletion
    )
    cdef _read_slot(self, Receive receive)
    @cython.locals(queue=QueueState, received=list)
    cdef int command_issued(self, Receive receive) except -1
    cdef int slot_copied(self, Receive receive, object data) except -1
    cdef _complete(self, Receive receive, object data)
    cdef _refuse_gaps(self, Receive receive, long long nbytes)
    cdef _fail(self, Receive receive, object problem)
    cdef object _mismatch(self, Receive receive, Slot slot, long long expected)
    cdef bint _is_expected(self, Receive receive, Slot slot, long long nbytes) except -1
