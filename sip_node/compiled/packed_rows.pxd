"""Rows of a table of the records of a run, packed in C: see packed_rows.pyx."""


cdef class PackedRows:
    cdef object recorder
    cdef object table
    cdef dict texts
    cdef char *packed
    cdef Py_ssize_t row_bytes
    cdef Py_ssize_t most
    cdef Py_ssize_t size

    cdef int start(self, recorder, table, Py_ssize_t row_bytes, Py_ssize_t most) except -1
    cdef int text(self, object text) except -1
    cdef void *new_row(self) except NULL
    cdef int pass_on(self) except -1
