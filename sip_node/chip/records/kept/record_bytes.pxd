"""The bytes of a record of the op log, with its numbers or with holes for them: see
record_bytes.pyx.
"""

from sip_node.compiled.operation cimport Operation
from sip_node.compiled.packed_bytes cimport PackedBytes
from sip_node.kernel.containers.int_array cimport IntArray

cdef enum:
    # No value of MessagePack begins so: a hole, whose kind is the next byte.
    HOLE = 0xc1

cdef enum HoleKind:
    # Start, end, cube, PE and address.
    HEAD
    # The two SIPs of a flow, and its number.
    FLOW
    # The address of an operand, and a number that follows from the arguments of a launch.
    ADDRESS
    NUMBER
    CHECKSUM


cdef int add_record(
    PackedBytes to, str engine, str name, Operation *about, tuple shape, str dtype,
    tuple strides, tuple inputs, object flow, object axis, IntArray holes
) except -1
