"""Reads the records of an op log in C: see op_records.pyx."""

from coordinator.compiled.packed_values cimport Cursor, Number, Text


cdef struct PackedRecord:
    # The fields of `OpRecord`; those that are arrays, or may be None, where they begin.
    Text engine
    Text name
    Number start_ps
    Number end_ps
    Number cube
    Number pe
    Number address
    Number nbytes
    Cursor shape
    Text dtype
    Cursor flow
    bint flow_end
    Cursor inputs
    Cursor strides
    Cursor axis
    Number checksum


cdef struct PackedOperand:
    Number address
    Cursor shape
    Text dtype
    Cursor strides


cdef int take_record(Cursor *cursor, PackedRecord *record) except -1 nogil
cdef int take_operand(Cursor *cursor, PackedOperand *operand) except -1 nogil
