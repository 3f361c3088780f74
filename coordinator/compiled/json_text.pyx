"""Text of JSON in C, in the form that msgspec gives it."""

import msgspec

from coordinator.compiled.packed_values cimport take_length, take_number

cdef enum:
    # The longest text of a number.
    MOST_BYTES = 24
    PS_PER_US = 1_000_000

# Up to here, the decimals of a time are those of the nearest float.
cdef long long EXACT_PS = 10 ** 15
cdef object encode = msgspec.json.Encoder().encode

def escape(byte):
    # The bytes of other characters are not escaped.
    text = encode(chr(byte)) if byte < 0x80 else b""
    return text[1:len(text) - 1] if len(text) > 3 else b""


cdef const char *HEXADECIMAL = b"0123456789abcdef"
# The digits of the numbers below 100: half as many divisions.
cdef char[100][2] pairs = [f"{number:02}".encode() for number in range(100)]
# Of every byte what stands for it in a string; empty for one that stands for itself.
cdef list escapes = [escape(byte) for byte in range(256)]
cdef bint[256] is_escaped = [len(each) > 0 for each in escapes]


cdef class JsonText(ByteBuffer):
    """A text that grows."""

    cdef int add_bytes(self, bytes text) except -1:
        """Text that is JSON already, from Python."""
        return self.add(text)

    cdef int add_escaped(self, unsigned char byte) except -1 with gil:
        """A byte for which something else stands in a string."""
        return self.add_bytes(escapes[byte])

    cdef int add_text(self, Text *text) except -1 nogil:
        """The inside of a string."""
        cdef Py_ssize_t index
        cdef unsigned char byte
        self.reserve(text.nbytes)
        for index in range(text.nbytes):
            byte = text.start[index]
            if is_escaped[byte]:
                self.add_escaped(byte)
                self.reserve(text.nbytes - index)
            else:
                self.start[self.size] = byte
                self.size += 1
        return 0

    cdef int add_natural(self, unsigned long long value) except -1 nogil:
        self.reserve(MOST_BYTES)
        return self.add_decimals(value)

    cdef int add_number(self, Number *number) except -1 nogil:
        self.reserve(MOST_BYTES)
        if number.is_negative:
            self.start[self.size] = b"-"
            self.size += 1
        return self.add_decimals(number.magnitude)

    cdef int add_hexadecimal(self, Number *number) except -1 nogil:
        """The text of `hex`."""
        cdef int place, digits = 1
        cdef unsigned long long rest = number.magnitude
        self.add(b"-0x" if number.is_negative else b"0x")
        while digits < 16 and number.magnitude >> 4 * digits:
            digits += 1
        self.reserve(MOST_BYTES)
        self.size += digits
        for place in range(1, digits + 1):
            self.start[self.size - place] = HEXADECIMAL[rest & 15]
            rest >>= 4
        return 0

    cdef int add_microseconds(self, long long time_ps) except -1 nogil:
        """The float `time_ps / 1e6`, by which the Trace Event Format gives a time."""
        cdef int place, digits = 6
        cdef long long rest
        if not 10 <= time_ps < EXACT_PS:
            return self.add_any_microseconds(time_ps)
        self.reserve(MOST_BYTES)
        self.add_decimals(time_ps // PS_PER_US)
        rest = time_ps % PS_PER_US
        while digits > 1 and rest % 10 == 0:
            rest //= 10
            digits -= 1
        self.start[self.size] = b"."
        self.size += digits + 1
        for place in range(1, digits + 1):
            self.start[self.size - place] = 48 + rest % 10
            rest //= 10
        return 0

    cdef int add_any_microseconds(self, long long time_ps) except -1 with gil:
        return self.add_bytes(encode(<object> time_ps / <object> PS_PER_US))

    cdef int add_numbers(self, Cursor numbers, const char *separator) except -1 nogil:
        """An array of integers."""
        cdef Number number
        cdef Py_ssize_t index
        self.add(b"[")
        for index in range(take_length(&numbers)):
            if index:
                self.add(separator)
            take_number(&numbers, &number)
            self.add_number(&number)
        return self.add(b"]")

    cdef int add_decimals(self, unsigned long long value) except -1 nogil:
        """A number without sign; there is room for it."""
        cdef char digits[MOST_BYTES]
        cdef char *first = digits + MOST_BYTES
        while value >= 100:
            first -= 2
            memcpy(first, &pairs[value % 100][0], 2)
            value //= 100
        if value >= 10:
            first -= 2
            memcpy(first, &pairs[value][0], 2)
        else:
            first -= 1
            first[0] = 48 + value
        memcpy(self.start + self.size, first, digits + MOST_BYTES - first)
        self.size += digits + MOST_BYTES - first
        return 0
