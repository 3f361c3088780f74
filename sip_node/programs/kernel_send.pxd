cimport cython

from sip_node.chip.completion cimport AnyCompletion, Continuation
from sip_node.chip.pe.queue_table cimport QueueState, QueueTable
from sip_node.chip.records.op_log cimport OpLog
from sip_node.kernel.calendar cimport Calendar
from sip_node.kernel cimport events
from sip_node.programs cimport kept_slots


cdef class SentMessage(Continuation):
    cdef readonly QueueState queue
    cdef readonly str background
    cdef readonly long long nbytes, sent
    cdef public AnyCompletion paused
    cdef readonly str operation, line, direction
    cdef readonly long long since_ps
    cdef long long step
    # The bytes of an element.
    cdef long long item
    cdef object block, data, slot
    cdef bint starved, needs_credit
    cdef Sends sends


cdef class Sends:
    cdef object _issuer, _wait, _dma, _queues, _faults, _trace
    cdef OpLog _log
    cdef dict _background
    cdef Calendar _engine
    cdef long long _issue_ps
    cdef QueueTable _table
    # Whether a collective that reserves the queues stops this kernel.
    cdef bint _excluded
    cdef str _call

    @cython.locals(queue=QueueState, nbytes=cython.longlong)
    cdef SentMessage _message(self, str direction, object value, str background=*)
    cpdef AnyCompletion _begin(self, SentMessage message)
    cpdef AnyCompletion _append(self, SentMessage message)
    cdef int _next(self, SentMessage message) except -1
    cdef int _issue(self, SentMessage message) except -1
    cdef int reserve(self, SentMessage message) except -1
    @cython.locals(left=AnyCompletion)
    cdef int write(self, SentMessage message, long long address) except -1
    cdef int left(self, SentMessage message) except -1
