"""Reads the records of an op log in C, in the form in which the LPs encode them."""

from coordinator.compiled.packed_values cimport (
    is_array,
    skip_numbers,
    take_flag,
    take_length,
    take_nothing,
    take_number,
    take_real,
    take_text,
)

cdef enum:
    FIELDS = 16
    OPERAND_FIELDS = 4
    FLOW_NUMBERS = 3


cdef int take_record(Cursor *cursor, PackedRecord *record) except -1 nogil:
    """Read a record with all of its fields; `ValueError` for anything else."""
    if take_length(cursor) != FIELDS:
        raise ValueError("not the fields of a record")
    take_text(cursor, &record.engine)
    take_text(cursor, &record.name)
    take_number(cursor, &record.start_ps)
    take_number(cursor, &record.end_ps)
    take_number(cursor, &record.cube)
    take_number(cursor, &record.pe)
    take_number(cursor, &record.address)
    take_number(cursor, &record.nbytes)
    record.shape = cursor[0]
    skip_numbers(cursor)
    take_text(cursor, &record.dtype)
    record.flow = cursor[0]
    skip_flow(cursor)
    record.flow_end = take_flag(cursor)
    record.inputs = cursor[0]
    skip_inputs(cursor)
    record.strides = cursor[0]
    skip_numbers(cursor)
    record.axis = cursor[0]
    skip_axis(cursor)
    take_number(cursor, &record.checksum)
    return 0


cdef int take_operand(Cursor *cursor, PackedOperand *operand) except -1 nogil:
    """Read an operand of a record."""
    if take_length(cursor) != OPERAND_FIELDS:
        raise ValueError("not the fields of an operand")
    take_number(cursor, &operand.address)
    operand.shape = cursor[0]
    skip_numbers(cursor)
    take_text(cursor, &operand.dtype)
    operand.strides = cursor[0]
    skip_numbers(cursor)
    return 0


cdef int skip_flow(Cursor *cursor) except -1 nogil:
    cdef Number number
    cdef int index
    if take_nothing(cursor):
        return 0
    if take_length(cursor) != FLOW_NUMBERS:
        raise ValueError("not the numbers of a flow")
    for index in range(FLOW_NUMBERS):
        take_number(cursor, &number)
    return 0


cdef int skip_inputs(Cursor *cursor) except -1 nogil:
    cdef PackedOperand operand
    cdef Py_ssize_t index
    for index in range(take_length(cursor)):
        if is_array(cursor):
            take_operand(cursor, &operand)
        else:
            take_real(cursor)
    return 0


cdef int skip_axis(Cursor *cursor) except -1 nogil:
    cdef Number number
    if not take_nothing(cursor):
        take_number(cursor, &number)
    return 0
