from sip_node.kernel.calendar cimport Calendar
from sip_node.programs.program cimport AnyProgram, Program
from sip_node.programs.program_steps cimport ProgramSteps


cdef class CommandIssuer:
    cdef readonly Calendar engine
    cdef AnyProgram _program
    cdef ProgramSteps _steps
    cdef public str line
    cdef readonly long long issue_ps
    cdef long long _translated_ps

    cpdef object block(self, object steps)
    cdef object _issuing(self, str operation, long long cost_ps, object start, tuple args)
    cdef int _begin(self, long long cost_ps, object start, tuple args) except -1
    cdef object _waiting(self, object blocked, long long issue_ps, tuple call)
