"""MessagePack in C: see packed_bytes.pyx. What is inline is in every record many times."""

cimport cython

from runtime.core.compiled.byte_buffer cimport ByteBuffer

cdef enum:
    # The longest encoding of a number, a length, or a flag.
    MOST_BYTES = 9
    NOTHING = 0xc0
    NO = 0xc2
    YES = 0xc3
    # The first byte of a short value has its length.
    FIX_ARRAY = 0x90
    FIX_TEXT = 0xa0
    TEXT_8 = 0xd9
    ARRAY_16 = 0xdc

cdef extern from *:
    """
    static inline char *kb_big_endian(char *to, int code, uint64_t value, int nbytes) {
        *to++ = (char) code;
        for (int shift = 8 * (nbytes - 1); shift >= 0; shift -= 8)
            *to++ = (char) (value >> shift);
        return to;
    }

    static inline char *kb_number(char *to, long long value) {
        if (value >= -0x20 && value < 0x80) {
            *to++ = (char) value;
            return to;
        }
        if (value >= 0) {
            if (value <= 0xff) return kb_big_endian(to, 0xcc, value, 1);
            if (value <= 0xffff) return kb_big_endian(to, 0xcd, value, 2);
            if (value <= 0xffffffffLL) return kb_big_endian(to, 0xce, value, 4);
            return kb_big_endian(to, 0xcf, value, 8);
        }
        if (value >= -0x80) return kb_big_endian(to, 0xd0, value, 1);
        if (value >= -0x8000) return kb_big_endian(to, 0xd1, value, 2);
        if (value >= -0x80000000LL) return kb_big_endian(to, 0xd2, value, 4);
        return kb_big_endian(to, 0xd3, value, 8);
    }

    static inline char *kb_double(char *to, double value) {
        uint64_t bits;
        memcpy(&bits, &value, 8);
        return kb_big_endian(to, 0xcb, bits, 8);
    }
    """
    char *kb_big_endian(char *to, int code, unsigned long long value, int nbytes)
    char *kb_number(char *to, long long value)
    char *kb_double(char *to, double value)
    const char *PyUnicode_AsUTF8AndSize(object text, Py_ssize_t *size) except NULL
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1


@cython.final
cdef class PackedBytes(ByteBuffer):
    cdef int add_text(self, str value) except -1
    cdef int add_integers(self, tuple values) except -1
    cdef int add_value(self, object value) except -1
    cdef int add_other(self, object value) except -1
    cdef bytes taken_as_array(self, Py_ssize_t length)

    cdef inline int add_number(self, long long value) except -1:
        self.reserve(MOST_BYTES)
        self.size = kb_number(self.start + self.size, value) - self.start
        return 0

    cdef inline int add_length(self, Py_ssize_t length) except -1:
        """The header of an array of at most 65,535 values, which follow."""
        self.reserve(MOST_BYTES)
        if length < 16:
            self.start[self.size] = <char> (FIX_ARRAY | length)
            self.size += 1
        elif length <= 0xffff:
            self.size = kb_big_endian(self.start + self.size, ARRAY_16, length, 2) - self.start
        else:
            raise OverflowError(f"an array of {length:,} values in an op log")
        return 0

    cdef inline int add_flag(self, bint value) except -1:
        self.reserve(MOST_BYTES)
        self.start[self.size] = <char> (YES if value else NO)
        self.size += 1
        return 0

    cdef inline int add_nothing(self) except -1:
        """None."""
        self.reserve(MOST_BYTES)
        self.start[self.size] = <char> NOTHING
        self.size += 1
        return 0
