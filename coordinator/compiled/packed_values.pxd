"""Reads MessagePack in C, value by value: see packed_values.pyx."""


cdef struct Cursor:
    # The next value begins at `position`, and the last one ends before `end`.
    const unsigned char *position
    const unsigned char *end


cdef struct Number:
    # Every integer of MessagePack: from -2**63 to 2**64 - 1.
    unsigned long long magnitude
    bint is_negative


cdef struct Text:
    # UTF-8.
    const char *start
    Py_ssize_t nbytes


cdef Py_ssize_t take_length(Cursor *cursor) except -1 nogil
cdef int take_number(Cursor *cursor, Number *number) except -1 nogil
cdef int take_text(Cursor *cursor, Text *text) except -1 nogil
cdef int take_flag(Cursor *cursor) except -1 nogil
cdef bint take_nothing(Cursor *cursor) except -1 nogil
cdef bint is_array(Cursor *cursor) except -1 nogil
cdef double take_real(Cursor *cursor) except? -1 nogil
cdef int skip_numbers(Cursor *cursor) except -1 nogil
cdef long long as_integer(Number *number) except? -1 nogil
