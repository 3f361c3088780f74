"""The rows of the steps of programs for the records of a run, in C; see `sip_node.chip.step_rows`.
"""

from cpython.ref cimport PyObject

from runtime.core.run_tables import STEPS
from sip_node.compiled.packed_rows cimport PackedRows

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


cdef class StepRows(PackedRows):
    """The twin of `ReferenceStepRows`."""

    def __init__(self, recorder):
        self.start(recorder, STEPS, sizeof(StepRow), ROWS)
        self.codes = {}

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
