"""The steps of programs in C; see `sip_node.programs.program_steps`."""

from runtime.core.run_tables import Cause
from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.op_log cimport OpLog
from sip_node.chip.step_rows cimport StepRow, StepRows

cdef object NO_CAUSE = Cause.NONE
cdef object PEER = Cause.PEER


cdef class ProgramSteps:
    """The first base of a class whose second base is `ReferenceProgramSteps`."""

    def bind(self, Calendar engine not None, OpLog log not None, StepRows rows not None,
             int program, int cube, int pe):
        """Take what the reference holds."""
        self.calendar, self.op_log, self.rows = engine, log, rows
        self.number, self.cube, self.pe = program, cube, pe

    def step(self, blocked, long long issue_ps, sleep, *args):
        """See the reference."""
        return self.run(blocked, self.rows.kernel_line(), issue_ps, sleep, args)

    def block(self, blocked, int line, long long issue_ps, sleep, *args):
        """See the reference."""
        return self.run(blocked, line, issue_ps, sleep, args)

    cdef object run(self, object blocked, int line, long long issue_ps, object sleep, tuple args):
        """`block` for C classes."""
        cdef long long step = self.rows.numbers, begin_ps = self.calendar.now_ps
        self.rows.numbers += 1
        try:
            value = sleep(*args)
        # Not what deletes a program that waits at the end of a run.
        except Exception:
            self.end(step, blocked, line, begin_ps, issue_ps)
            raise
        self.end(step, blocked, line, begin_ps, issue_ps)
        return value

    cdef int end(
        self, long long step, object blocked, int line, long long begin_ps, long long issue_ps
    ) except -1:
        """See `ReferenceProgramSteps._ended`."""
        cdef long long now_ps = self.calendar.now_ps, issued_ps = begin_ps + issue_ps
        cdef long long released_by = -1
        cdef int sip = -1, cube = -1, pe = -1, scratch_bytes = 0
        cdef int operation, cause, direction
        cdef StepRow *row
        if now_ps == begin_ps:
            return 0
        if isinstance(blocked, tuple):
            # An `Issued`, without a search for its fields by name.
            called, waited_for, towards = <tuple> blocked
        else:
            called, waited_for, towards = blocked.operation, None, blocked.direction
        if now_ps <= issued_ps:
            waited_for = NO_CAUSE
        else:
            if waited_for is None:
                waited_for = blocked.cause
            if waited_for != PEER:
                released_by = self.op_log.ended_now(now_ps, self.cube, self.pe)
        towards = towards or ""
        if towards and self.pair_of is not None:
            sip, cube, pe = self.pair_of(towards).peer
        operation = self.rows.text(called)
        cause = self.rows.text(waited_for)
        direction = self.rows.text(towards)
        if self.scratch_bytes is not None:
            scratch_bytes = self.scratch_bytes()
        row = <StepRow *> self.rows.new_row()
        row.step, row.program, row.operation, row.line = step, self.number, operation, line
        row.begin_ps, row.issued_ps, row.end_ps = begin_ps, issued_ps, now_ps
        row.cause, row.released_by, row.direction = cause, released_by, direction
        row.peer_sip, row.peer_cube, row.peer_pe = sip, cube, pe
        row.scratch_bytes = scratch_bytes
        return 0
