"""Text of JSON in C: see json_text.pyx. What is inline is in every line many times."""

cimport cython

from coordinator.compiled.packed_values cimport Cursor, Number, Text
from libc.string cimport memcpy, strlen
from runtime.core.compiled.byte_buffer cimport ByteBuffer


@cython.final
cdef class JsonText(ByteBuffer):
    cdef inline int add(self, const char *literal) except -1 nogil:
        """Text that is JSON already; of a literal, the compiler has the length."""
        cdef size_t nbytes = strlen(literal)
        self.reserve(nbytes)
        memcpy(self.start + self.size, literal, nbytes)
        self.size += nbytes
        return 0

    cdef int add_bytes(self, bytes text) except -1
    cdef int add_escaped(self, unsigned char byte) except -1 with gil
    cdef int add_any_microseconds(self, long long time_ps) except -1 with gil
    cdef int add_text(self, Text *text) except -1 nogil
    cdef int add_natural(self, unsigned long long value) except -1 nogil
    cdef int add_number(self, Number *number) except -1 nogil
    cdef int add_hexadecimal(self, Number *number) except -1 nogil
    cdef int add_microseconds(self, long long time_ps) except -1 nogil
    cdef int add_numbers(self, Cursor numbers, const char *separator) except -1 nogil
    cdef int add_decimals(self, unsigned long long value) except -1 nogil
