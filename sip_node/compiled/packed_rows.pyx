"""Rows of a table of the records of a run, packed in C, which go to the recorder in pieces."""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free

from runtime.core.compiled.memory_blocks cimport resized


cdef class PackedRows:
    """The first base of the rows of a table."""

    cdef int start(self, recorder, table, Py_ssize_t row_bytes, Py_ssize_t most) except -1:
        """Keep up to `most` rows; `row_bytes` is the size of the struct of a row."""
        if table.row_bytes != row_bytes:
            raise ValueError(f"a row of {table.row_bytes} bytes, the core has {row_bytes}")
        self.recorder, self.table, self.texts = recorder, table, {}
        self.row_bytes, self.most = row_bytes, most
        self.recent_texts = [None] * RECENT_TEXTS
        self.packed = <char *> resized(NULL, most * row_bytes)
        return 0

    def __dealloc__(self):
        PyMem_Free(self.packed)

    def flush(self):
        """Give the rows to the recorder."""
        self.pass_on()

    cdef int find_text(self, object text) except -1:
        """The same of a text that is another object than those used last."""
        cdef size_t place = (<size_t> <void *> text >> 4) & (RECENT_TEXTS - 1)
        index = self.texts.get(text)
        if index is None:
            index = self.texts[text] = self.recorder.text(text)
        self.recent_texts[place] = text
        self.recent[place].text, self.recent[place].index = <void *> text, index
        return index

    cdef void *new_row(self) except NULL:
        """The memory of one more row."""
        if self.size == self.most:
            self.pass_on()
        self.size += 1
        return self.packed + (self.size - 1) * self.row_bytes

    cdef int pass_on(self) except -1:
        cdef bytes rows
        if self.size:
            rows = PyBytes_FromStringAndSize(self.packed, self.size * self.row_bytes)
            # First, since the recorder may raise what ends the run.
            self.size = 0
            self.recorder.add(self.table, rows)
            if self.kept is not None:
                self.kept += rows
        return 0

    cdef int begin_keeping(self) except -1:
        """Keep the rows that are added from now on, until `kept` is None or this is called again.
        """
        self.pass_on()
        self.kept = bytearray()
        return 0

    cdef bytes kept_rows(self):
        """The rows that are kept."""
        self.pass_on()
        return bytes(self.kept)
