"""The bytes of a record of the op log: its fields in MessagePack, in the order of `OpRecord`.

With holes in place of what may differ from one repetition of an operation to the next, the bytes
are the form of a record, which records of other times, PEs and addresses have in common.
"""

from runtime.core.launch_numbers import LaunchNumber
from runtime.core.trace import Operand
from sip_node.compiled.struct_fields cimport field_at, offset_of

cdef object operand_type = Operand, number_type = LaunchNumber
cdef Py_ssize_t ADDRESS_FIELD = offset_of(Operand, "address")
cdef Py_ssize_t SHAPE = offset_of(Operand, "shape")
cdef Py_ssize_t DTYPE = offset_of(Operand, "dtype")
cdef Py_ssize_t STRIDES = offset_of(Operand, "strides")


cdef int add_record(
    PackedBytes to, str engine, str name, Operation *about, tuple shape, str dtype,
    tuple strides, tuple inputs, object flow, object axis, IntArray holes
) except -1:
    """Add the bytes of a record; with `holes`, these take the places of holes among the bytes."""
    cdef bint with_holes = holes is not None
    to.add_length(16)
    to.add_text(engine)
    to.add_text(name)
    if with_holes:
        add_hole(to, HEAD, holes)
    else:
        to.add_number(about.start_ps)
        to.add_number(about.end_ps)
        to.add_number(about.cube)
        to.add_number(about.pe)
        to.add_number(about.address)
    to.add_number(about.nbytes)
    to.add_integers(shape)
    to.add_text(dtype)
    if flow is None:
        to.add_nothing()
    elif with_holes:
        add_hole(to, FLOW, holes)
    else:
        to.add_integers(flow)
    to.add_flag(about.flow_end)
    to.add_length(len(inputs))
    for each in inputs:
        if type(each) is operand_type:
            to.add_length(4)
            if with_holes:
                add_hole(to, ADDRESS, holes)
            else:
                # It may be in memory of any SIP, so below 2**63.
                to.add_value(field_at(each, ADDRESS_FIELD))
            to.add_integers(<tuple> field_at(each, SHAPE))
            to.add_text(<str> field_at(each, DTYPE))
            to.add_integers(<tuple> field_at(each, STRIDES))
        elif with_holes and type(each) is number_type:
            add_hole(to, NUMBER, holes)
        else:
            to.add_value(each)
    to.add_integers(strides)
    if axis is None:
        to.add_nothing()
    else:
        to.add_value(axis)
    if with_holes:
        add_hole(to, CHECKSUM, holes)
    else:
        to.add_number(about.checksum)
    return 0


cdef int add_hole(PackedBytes to, HoleKind kind, IntArray holes) except -1:
    holes.append(to.size)
    to.reserve(2)
    to.start[to.size], to.start[to.size + 1] = <char> HOLE, <char> kind
    to.size += 2
    return 0
