"""Text of JSON in C: see json_text.pyx."""

from coordinator.compiled.packed_values cimport Cursor, Number, Text
from runtime.core.compiled.byte_buffer cimport ByteBuffer


cdef class JsonText(ByteBuffer):
    cdef int add(self, const char *literal) except -1
    cdef int add_bytes(self, bytes text) except -1
    cdef int add_text(self, Text *text) except -1
    cdef int add_integer(self, long long value) except -1
    cdef int add_number(self, Number *number) except -1
    cdef int add_hexadecimal(self, Number *number) except -1
    cdef int add_microseconds(self, long long time_ps) except -1
    cdef int add_numbers(self, Cursor numbers, const char *separator) except -1
    cdef int add_decimals(self, unsigned long long value) except -1
