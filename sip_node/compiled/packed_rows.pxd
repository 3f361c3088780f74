"""Rows of a table of the records of a run, packed in C: see packed_rows.pyx."""

cimport cython


cdef enum:
    # A power of two.
    RECENT_TEXTS = 64


cdef struct RecentText:
    # A text, which `recent_texts` keeps, and its index.
    void *text
    int index


cdef class PackedRows:
    cdef object recorder
    cdef object table
    cdef dict texts
    # The texts used last, by a hash of their addresses: the dict takes ten times as long.
    cdef list recent_texts
    cdef RecentText[RECENT_TEXTS] recent
    cdef char *packed
    cdef Py_ssize_t row_bytes
    cdef Py_ssize_t most
    cdef Py_ssize_t size
    # A bytearray, while rows are kept.
    cdef object kept

    cdef int start(self, recorder, table, Py_ssize_t row_bytes, Py_ssize_t most) except -1
    cdef int find_text(self, object text) except -1
    cdef void *new_row(self) except NULL
    cdef int pass_on(self) except -1
    cdef int begin_keeping(self) except -1
    cdef bytes kept_rows(self)

    @cython.final
    cdef inline int text(self, object text) except -1:
        """The index of a text in the list of texts of the SIP."""
        cdef RecentText *recent = &self.recent[(<size_t> <void *> text >> 4) & (RECENT_TEXTS - 1)]
        return recent.index if recent.text == <void *> text else self.find_text(text)
