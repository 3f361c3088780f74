cimport cython

from sip_node.chip.completion cimport AnyCompletion
from sip_node.chip.records.call_rows cimport CallRows
from sip_node.kernel.calendar cimport Calendar
from sip_node.programs.program_steps cimport ProgramSteps

cdef int _READ, _WRITE, _MAKE, _IN_TCM, _IN_MEMORY


cdef class KernelCalls:
    cdef CallRows rows
    cdef Calendar engine
    cdef ProgramSteps _steps
    cdef object _issuer
    cdef int program

    @cython.locals(rows=CallRows, number=cython.longlong, text=cython.int)
    cpdef KernelCall begin(
        self, str operation, object reads=*, object values=*, str line=*
    )
    @cython.locals(
        line=cython.int, rows=CallRows, call=cython.longlong, end_ps=cython.longlong,
        awaits=cython.longlong, of=cython.int, to=cython.int,
    )
    cpdef waited(self, KernelCall operation, long long begin_ps)
    @cython.locals(call=KernelCall)
    cpdef made(self, object value)


@cython.freelist(256)
cdef class KernelCall:
    cdef KernelCalls _calls
    cdef readonly long long number
    cdef public str operation
    cdef int _line, _slots, _depth
    cdef long long _begin_ps
    cdef str _queue

    cpdef writes(self, object blocks)
    cpdef makes(self, object values)
    cpdef served(self, long long number)
    @cython.locals(calls=KernelCalls, rows=CallRows)
    cpdef ended(self, AnyCompletion done=*)
    cdef _uses(self, str queue, object pair, long long nbytes)


cdef str _queue(str table, object pe, str direction, str call)
