"""Reads MessagePack in C, value by value; raises `ValueError` for a value of another kind.

Other threads of Python run meanwhile.
"""

from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.string cimport memcpy

cdef enum:
    # The first bytes of values; a short value has its length or its number in it.
    FIX_ARRAY = 0x90
    FIX_TEXT = 0xa0
    NOTHING = 0xc0
    NO = 0xc2
    YES = 0xc3
    REAL_32 = 0xca
    REAL_64 = 0xcb
    NATURAL_8 = 0xcc
    NATURAL_64 = 0xcf
    INTEGER_8 = 0xd0
    INTEGER_64 = 0xd3
    TEXT_8 = 0xd9
    TEXT_32 = 0xdb
    ARRAY_16 = 0xdc
    ARRAY_32 = 0xdd
    FIX_NEGATIVE = 0xe0


cdef Py_ssize_t take_length(Cursor *cursor) except -1 nogil:
    """The number of values of an array, which follow."""
    cdef unsigned char first = take_byte(cursor)
    if FIX_ARRAY <= first < FIX_TEXT:
        return first & 0xf
    if first == ARRAY_16:
        return take_bytes(cursor, 2)
    if first == ARRAY_32:
        return take_bytes(cursor, 4)
    raise ValueError("no array")


cdef int take_number(Cursor *cursor, Number *number) except -1 nogil:
    """An integer."""
    cdef unsigned char first = take_byte(cursor)
    cdef int nbytes, shift
    number.is_negative = False
    if first < FIX_ARRAY - 0x10:
        number.magnitude = first
    elif NATURAL_8 <= first <= NATURAL_64:
        number.magnitude = take_bytes(cursor, 1 << (first - NATURAL_8))
    elif INTEGER_8 <= first <= INTEGER_64:
        nbytes = 1 << (first - INTEGER_8)
        shift = 64 - 8 * nbytes
        set_signed(number, <long long> (take_bytes(cursor, nbytes) << shift) >> shift)
    elif first >= FIX_NEGATIVE:
        set_signed(number, <signed char> first)
    else:
        raise ValueError("no integer")
    return 0


cdef int take_text(Cursor *cursor, Text *text) except -1 nogil:
    """A text, which is valid UTF-8."""
    cdef unsigned char first = take_byte(cursor)
    cdef Py_ssize_t index
    if FIX_TEXT <= first < NOTHING:
        text.nbytes = first & 0x1f
    elif TEXT_8 <= first <= TEXT_32:
        text.nbytes = take_bytes(cursor, 1 << (first - TEXT_8))
    else:
        raise ValueError("no text")
    text.start = <const char *> cursor.position
    require(cursor, text.nbytes)
    for index in range(text.nbytes):
        if cursor.position[index] >= 0x80:
            check_characters(text)
            break
    cursor.position += text.nbytes
    return 0


cdef int take_flag(Cursor *cursor) except -1 nogil:
    """Whether a flag is set."""
    cdef unsigned char first = take_byte(cursor)
    if first != NO and first != YES:
        raise ValueError("no flag")
    return first == YES


cdef bint take_nothing(Cursor *cursor) except -1 nogil:
    """Whether the next value is None, which is then read."""
    require(cursor, 1)
    if cursor.position[0] != NOTHING:
        return False
    cursor.position += 1
    return True


cdef bint is_array(Cursor *cursor) except -1 nogil:
    """Whether the next value is an array."""
    require(cursor, 1)
    return FIX_ARRAY <= cursor.position[0] < FIX_TEXT or ARRAY_16 <= cursor.position[0] <= ARRAY_32


cdef double take_real(Cursor *cursor) except? -1 nogil:
    """A number, as Python's float."""
    cdef unsigned char first
    cdef unsigned long long bits
    cdef unsigned int low
    cdef double value
    cdef float single
    cdef Number number
    require(cursor, 1)
    first = cursor.position[0]
    if first == REAL_64:
        cursor.position += 1
        bits = take_bytes(cursor, 8)
        memcpy(&value, &bits, 8)
        return value
    if first == REAL_32:
        cursor.position += 1
        low = <unsigned int> take_bytes(cursor, 4)
        memcpy(&single, &low, 4)
        return single
    take_number(cursor, &number)
    return -<double> number.magnitude if number.is_negative else <double> number.magnitude


cdef int skip_numbers(Cursor *cursor) except -1 nogil:
    """Read an array of integers."""
    cdef Py_ssize_t index
    cdef Number number
    for index in range(take_length(cursor)):
        take_number(cursor, &number)
    return 0


cdef long long as_integer(Number *number) except? -1 nogil:
    """The value of an integer that fits into 63 bits and a sign."""
    if (number.magnitude - number.is_negative) >> 63:
        raise ValueError("an integer of more than 63 bits")
    # Without overflow for the least integer.
    return -(<long long> (number.magnitude - 1)) - 1 if number.is_negative else (
        <long long> number.magnitude
    )


cdef int check_characters(Text *text) except -1 with gil:
    PyUnicode_DecodeUTF8(text.start, text.nbytes, NULL)
    return 0


cdef inline int require(Cursor *cursor, Py_ssize_t nbytes) except -1 nogil:
    if cursor.end - cursor.position < nbytes:
        raise ValueError("the end of the bytes")
    return 0


cdef inline int take_byte(Cursor *cursor) except -1 nogil:
    cdef unsigned char byte
    require(cursor, 1)
    byte = cursor.position[0]
    cursor.position += 1
    return byte


cdef inline unsigned long long take_bytes(Cursor *cursor, int nbytes) except? 0 nogil:
    """A number without sign, of which the highest byte comes first."""
    cdef unsigned long long value = 0
    cdef int index
    require(cursor, nbytes)
    for index in range(nbytes):
        value = value << 8 | cursor.position[index]
    cursor.position += nbytes
    return value


cdef inline void set_signed(Number *number, long long value) noexcept nogil:
    number.is_negative = value < 0
    # Without overflow for the least integer.
    number.magnitude = <unsigned long long> (-(value + 1)) + 1 if value < 0 else value
