cimport cython

from sip_node.chip.records.step_rows cimport StepRows
from sip_node.kernel.calendar cimport Calendar
from sip_node.chip.records.op_log cimport OpLog as LogInC


cdef class ProgramSteps:
    cdef public object pair_of, scratch_bytes
    cdef Calendar _engine
    cdef LogInC _log
    cdef object _origin, _recorder
    cdef StepRows _rows
    cdef int _program, _cube, _pe
    cdef long long _begin_ps

    @cython.locals(rows=StepRows)
    cpdef int line_of(self, str line) except -1
    cpdef long long new_step(self) except -1
    cpdef object _issue(self, long long step, object start, tuple args)
    @cython.locals(rows=StepRows, released_by=cython.longlong)
    cdef int _ended(
        self, long long step, object blocked, int line, long long begin_ps, long long issue_ps,
        object call
    ) except -1
