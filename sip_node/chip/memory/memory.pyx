"""The bytes of one modelled memory, in C. Its version in Python, `memory.py`, has the rules.

A row of a strided block is one copy, as is each of its parts where it crosses into another page.
"""

from cpython.buffer cimport Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.string cimport memcmp, memcpy, memset


cpdef enum:
    # The digest covers whole pages.
    PAGE_BYTES = 0x10000


cdef struct Rows:
    # The fields of a block, and where the next part begins: a row, and bytes of it to skip.
    long long row_bytes, pitch, plane_rows, plane_pitch, row, skip


cdef inline Rows rows_from(object rows, long long begin) except *:
    """The rows of a block from its packed byte `begin` on."""
    cdef Rows left
    left.row_bytes, left.pitch, left.plane_rows, left.plane_pitch = rows
    left.row, left.skip = begin // left.row_bytes, begin % left.row_bytes
    return left


cdef inline long long start_of(Rows *left) noexcept:
    """The offset of the next part, in bytes from the start of the first row."""
    cdef long long row = left.row, start = left.skip
    if left.plane_rows:
        start += row // left.plane_rows * left.plane_pitch
        row = row % left.plane_rows
    return start + row * left.pitch


cdef inline long long pass_row(Rows *left, long long most) noexcept:
    """Pass the rest of the row, at most `most` bytes; returns how many."""
    cdef long long count = min(left.row_bytes - left.skip, most)
    left.row, left.skip = left.row + 1, 0
    return count


cdef class Memory:
    """A memory of `nbytes`, with the page of the last access at hand."""

    def __init__(self, str name, long long nbytes, *, bint data):
        self.name, self.nbytes, self.keeps_data = name, nbytes, data
        self.pages, self.last_number = {}, -1

    cpdef bytes read(self, long long offset, long long nbytes):
        cdef bytes content
        self.check("read", offset, nbytes)
        if not self.keeps_data:
            return b""
        content = PyBytes_FromStringAndSize(NULL, nbytes)
        self.fetch(offset, PyBytes_AS_STRING(content), nbytes)
        return content

    cpdef int write(self, long long offset, object data) except -1:
        cdef Py_buffer view
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            self.check("write", offset, view.len)
            self.store(offset, <const char *> view.buf, view.len)
        finally:
            PyBuffer_Release(&view)
        return 0

    cpdef bytes read_rows(self, long long offset, object rows, long long begin, long long nbytes):
        cdef bytes content
        cdef char *to
        cdef long long start, count
        cdef Rows left = rows_from(rows, begin)
        if not self.keeps_data:
            return b""
        content = PyBytes_FromStringAndSize(NULL, nbytes)
        to = PyBytes_AS_STRING(content)
        while nbytes:
            start = offset + start_of(&left)
            count = pass_row(&left, nbytes)
            self.check("read", start, count)
            self.fetch(start, to, count)
            to += count
            nbytes -= count
        return content

    cpdef int write_rows(
        self, long long offset, object rows, long long begin, object data
    ) except -1:
        cdef Py_buffer view
        cdef long long start, count, done = 0
        cdef Rows left = rows_from(rows, begin)
        PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        try:
            while done < view.len:
                start = offset + start_of(&left)
                count = pass_row(&left, view.len - done)
                self.check("write", start, count)
                self.store(start, <const char *> view.buf + done, count)
                done += count
        finally:
            PyBuffer_Release(&view)
        return 0

    def contents(self):
        for number in sorted(self.pages):
            if not is_zero(self.pages[number]):
                yield number * PAGE_BYTES, self.pages[number]

    cdef int check(self, str access, long long offset, long long nbytes) except -1:
        if not 0 <= offset <= self.nbytes - nbytes:
            raise AssertionError(f"{self.name}: {access} of {nbytes} bytes at {offset:#x}")
        return 0

    cdef char *page(self, long long number, bint made) except? NULL:
        """The bytes of a page; NULL where it does not exist and is not made."""
        if number == self.last_number:
            return self.last_page
        content = self.pages.get(number)
        if content is None:
            if not made:
                return NULL
            content = self.pages[number] = bytearray(PAGE_BYTES)
        self.last_page, self.last_number = PyByteArray_AS_STRING(content), number
        return self.last_page

    cdef int fetch(self, long long offset, char *to, long long nbytes) except -1:
        """Copy bytes of the memory; the caller has checked that they exist."""
        cdef long long start, count
        cdef char *page
        while nbytes:
            start = offset % PAGE_BYTES
            count = min(PAGE_BYTES - start, nbytes)
            page = self.page(offset // PAGE_BYTES, False)
            if page is NULL:
                memset(to, 0, count)
            else:
                memcpy(to, page + start, count)
            to += count
            offset += count
            nbytes -= count
        return 0

    cdef int store(self, long long offset, const char *data, long long nbytes) except -1:
        """Copy bytes into the memory; the caller has checked that there is room."""
        cdef long long start, count
        while nbytes:
            start = offset % PAGE_BYTES
            count = min(PAGE_BYTES - start, nbytes)
            memcpy(self.page(offset // PAGE_BYTES, True) + start, data, count)
            data += count
            offset += count
            nbytes -= count
        return 0


cdef bint is_zero(bytearray page):
    """Whether all bytes of a page are zero: the first, and then each as its predecessor."""
    cdef char *start = PyByteArray_AS_STRING(page)
    return not start[0] and not memcmp(start, start + 1, PAGE_BYTES - 1)
