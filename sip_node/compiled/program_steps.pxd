"""The steps of programs in C: see program_steps.pyx."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.op_log cimport OpLog
from sip_node.chip.step_rows cimport StepRows


cdef class ProgramSteps:
    cdef Calendar calendar
    cdef OpLog op_log
    cdef StepRows rows
    cdef int number
    cdef int cube
    cdef int pe
    cdef public object pair_of
    cdef public object scratch_bytes

    cdef object run(self, object blocked, int line, long long issue_ps, object sleep, tuple args)
    cdef int end(
        self, long long step, object blocked, int line, long long begin_ps, long long issue_ps
    ) except -1
