"""The rows of the steps of programs for the records of a run, in C; see `sip_node.chip.step_rows`.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.ref cimport PyObject

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
    ROWS = 1024

cdef class CodeLines:
    """A code object and, of the code of a kernel, the texts of the lines of its instructions.

    The code is kept, so that no other has its address.
    """


cdef class StepRows:
    """The twin of `ReferenceStepRows`."""

    def __init__(self, recorder):
        if STEPS.row_bytes != sizeof(StepRow):
            raise ValueError(f"a row of {STEPS.row_bytes} bytes, the core has {sizeof(StepRow)}")
        self.recorder, self.texts, self.codes = recorder, {}, {}
        self.rows = <StepRow *> PyMem_Malloc(ROWS * sizeof(StepRow))
        if not self.rows:
            raise MemoryError

    def __dealloc__(self):
        PyMem_Free(self.rows)

    def flush(self):
        """Give the rows to the recorder."""
        self.pass_on()

    cdef int kernel_line(self) except -1:
        """The text of the innermost line of a kernel; see `ReferenceStepRows.line`."""
        cdef PyFrameObject *frame = PyEval_GetFrame()
        cdef PyFrameObject *outer
        cdef PyObject *code
        cdef CodeLines lines
        if frame == NULL:
            return self.recorder.unknown_line()
        Py_INCREF(<PyObject *> frame)
        try:
            while True:
                code = <PyObject *> PyFrame_GetCode(frame)
                # The frame has the code as well.
                Py_DECREF(code)
                found = self.codes.get(<size_t> code)
                lines = self.lines_of(frame, code) if found is None else <CodeLines> found
                if not lines.is_language:
                    at = PyFrame_GetLasti(frame)
                    text = lines.texts.get(at)
                    if text is None:
                        text = lines.texts[at] = self.recorder.line(<object> frame)
                    return text
                outer = PyFrame_GetBack(frame)
                if outer == NULL:
                    return self.recorder.unknown_line()
                Py_DECREF(<PyObject *> frame)
                frame = outer
        finally:
            Py_DECREF(<PyObject *> frame)

    cdef CodeLines lines_of(self, PyFrameObject *frame, PyObject *code):
        cdef CodeLines lines = CodeLines.__new__(CodeLines)
        lines.code, lines.texts = <object> code, {}
        lines.is_language = self.recorder.is_language(<object> frame)
        self.codes[<size_t> code] = lines
        return lines

    cdef int text(self, object text) except -1:
        found = self.texts.get(text)
        if found is None:
            found = self.texts[text] = self.recorder.text(text)
        return found

    cdef StepRow *new_row(self) except NULL:
        if self.size == ROWS:
            self.pass_on()
        self.size += 1
        return &self.rows[self.size - 1]

    cdef int pass_on(self) except -1:
        if self.size:
            self.recorder.add(
                STEPS, PyBytes_FromStringAndSize(<char *> self.rows, self.size * sizeof(StepRow))
            )
            self.size = 0
        return 0
