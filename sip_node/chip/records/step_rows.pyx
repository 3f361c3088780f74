"""The rows of the steps of programs for the records of a run, in C; step_rows.py is interpreted."""

from libc.string cimport memcpy

from runtime.core.run_tables import STEPS

cdef extern from "Python.h":
    ctypedef struct PyCodeObject
    PyFrameObject *PyEval_GetFrame()
    PyFrameObject *PyFrame_GetBack(PyFrameObject *frame)
    PyCodeObject *PyFrame_GetCode(PyFrameObject *frame)
    int PyFrame_GetLasti(PyFrameObject *frame)
    void Py_INCREF(PyObject *o)
    void Py_DECREF(PyObject *o)

cdef enum:
    # 18 KB, which stay in the caches until they are passed on.
    ROWS = 256

cdef class CodeLines:
    """A code object and, of the code of a kernel, the texts of the lines of its instructions.

    The code is kept, so that no other has its address.
    """


cdef class StepRows(PackedRows):
    """See step_rows.py."""

    def __init__(self, recorder):
        self.start(recorder, STEPS, sizeof(StepRow), ROWS)
        self.codes = {}

    cdef int kernel_line(self) except -1:
        """The text of the innermost line of a kernel; see step_rows.py."""
        cdef PyFrameObject *frame = PyEval_GetFrame()
        cdef PyFrameObject *outer
        cdef PyObject *code
        cdef CodeLines lines
        cdef size_t place
        cdef void *recent
        if frame == NULL:
            return self.recorder.unknown_line()
        Py_INCREF(<PyObject *> frame)
        try:
            while True:
                code = <PyObject *> PyFrame_GetCode(frame)
                # The frame has the code as well.
                Py_DECREF(code)
                place = <size_t> code >> 5 & (RECENT_CODES - 1)
                if self.language_codes[place] != code:
                    recent = self.recent_codes[place]
                    if recent != NULL and (<CodeLines> recent).address == code:
                        lines = <CodeLines> recent
                    else:
                        lines = self.lines_of(frame, code)
                    if not lines.is_language:
                        return self.line_at(lines, frame)
                    self.language_codes[place] = code
                outer = PyFrame_GetBack(frame)
                if outer == NULL:
                    return self.recorder.unknown_line()
                Py_DECREF(<PyObject *> frame)
                frame = outer
        finally:
            Py_DECREF(<PyObject *> frame)

    cdef long long new_step(self) except -1:
        """See step_rows.py."""
        self.numbers += 1
        return self.numbers - 1

    cdef int add(
        self, long long step, int program, int operation, int line, long long begin_ps,
        long long issued_ps, long long end_ps, int cause, long long released_by, int direction,
        int peer_sip, int peer_cube, int peer_pe, int scratch_bytes
    ) except -1:
        """See step_rows.py."""
        cdef StepRow *row = <StepRow *> self.new_row()
        row.step, row.program, row.operation, row.line = step, program, operation, line
        row.begin_ps, row.issued_ps, row.end_ps = begin_ps, issued_ps, end_ps
        row.cause, row.released_by, row.direction = cause, released_by, direction
        row.peer_sip, row.peer_cube, row.peer_pe = peer_sip, peer_cube, peer_pe
        row.scratch_bytes = scratch_bytes
        return 0

    @property
    def begun(self):
        """The number of steps that have begun."""
        return self.numbers

    def keep(self):
        """Keep the rows that are added from now on, until `end_keeping` or the next `keep`."""
        self.begin_keeping()

    def kept_steps(self):
        """The packed rows since `keep`."""
        return self.kept_rows()

    def end_keeping(self):
        """Keep no more rows."""
        self.kept = None

    def repeat(
        self, const unsigned char[:] rows, long long steps, int programs, long long moved_ps,
        long long records, long long begun
    ):
        """Add kept rows again: with later numbers of steps, programs and records, at a later time.

        `begun` steps begin with them.
        """
        cdef StepRow *row
        cdef Py_ssize_t count = rows.shape[0] // sizeof(StepRow), index
        self.numbers += begun
        if not count:
            return
        for index in range(count):
            row = <StepRow *> self.new_row()
            memcpy(row, &rows[index * sizeof(StepRow)], sizeof(StepRow))
            row.step += steps
            row.program += programs
            row.begin_ps += moved_ps
            row.issued_ps += moved_ps
            row.end_ps += moved_ps
            if row.released_by >= 0:
                row.released_by += records

    cdef CodeLines lines_of(self, PyFrameObject *frame, PyObject *code):
        cdef CodeLines lines
        known = self.codes.get(<size_t> code)
        if known is None:
            lines = self.codes[<size_t> code] = CodeLines.__new__(CodeLines)
            lines.code, lines.address, lines.texts = <object> code, code, {}
            lines.is_language = self.recorder.is_language(<object> frame)
        else:
            lines = <CodeLines> known
        self.recent_codes[<size_t> code >> 5 & (RECENT_CODES - 1)] = <void *> lines
        return lines

    cdef int line_at(self, CodeLines lines, PyFrameObject *frame) except -1:
        """The text of the line which a frame of a kernel executes."""
        cdef int instruction = PyFrame_GetLasti(frame)
        cdef RecentLine *recent = &lines.recent[instruction >> 1 & (RECENT_LINES - 1)]
        if recent.instruction != instruction + 1:
            text = lines.texts.get(instruction)
            if text is None:
                text = lines.texts[instruction] = self.recorder.line(<object> frame)
            recent.text, recent.instruction = text, instruction + 1
        return recent.text
