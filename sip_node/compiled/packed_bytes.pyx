"""MessagePack in C: values one behind the other, in the bytes that msgspec makes of them."""

import msgspec

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_CheckExact
from libc.string cimport memcpy

cdef object encode = msgspec.msgpack.Encoder().encode


cdef class PackedBytes(ByteBuffer):
    """Encoded values, until they are cleared."""

    cdef int add_text(self, str value) except -1:
        cdef Py_ssize_t length
        cdef const char *text
        if value is None:
            raise TypeError("None instead of a text")
        text = PyUnicode_AsUTF8AndSize(value, &length)
        if length > 0xff:
            return self.add_other(value)
        self.reserve(MOST_BYTES + length)
        if length < 32:
            self.start[self.size] = <char> (FIX_TEXT | length)
            self.size += 1
        else:
            self.size = kb_big_endian(self.start + self.size, TEXT_8, length, 1) - self.start
        memcpy(self.start + self.size, text, length)
        self.size += length
        return 0

    cdef int add_integers(self, tuple values) except -1:
        """An array of integers."""
        self.add_length(len(values))
        for value in values:
            self.add_value(value)
        return 0

    cdef int add_value(self, object value) except -1:
        """Any value: a number without a call of msgspec."""
        cdef int overflow = 0
        cdef long long number
        if PyLong_CheckExact(value):
            number = PyLong_AsLongLongAndOverflow(value, &overflow)
            return self.add_other(value) if overflow else self.add_number(number)
        # Numbers of a launch are floats with a formula.
        if PyFloat_Check(value):
            self.reserve(MOST_BYTES)
            self.size = (
                kb_double(self.start + self.size, PyFloat_AS_DOUBLE(value)) - self.start
            )
            return 0
        return self.add_other(value)

    cdef int add_other(self, object value) except -1:
        cdef bytes encoded = encode(value)
        cdef Py_ssize_t nbytes = PyBytes_GET_SIZE(encoded)
        self.reserve(nbytes)
        memcpy(self.start + self.size, PyBytes_AS_STRING(encoded), nbytes)
        self.size += nbytes
        return 0

    cdef bytes taken_as_array(self, Py_ssize_t length):
        """The encoded values, which are cleared, as one array of that length."""
        cdef PackedBytes header = PackedBytes.__new__(PackedBytes)
        header.add_length(length)
        return header.taken() + self.taken()
