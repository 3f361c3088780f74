"""The rows of operations for the records of a run, in C: see op_rows.pyx."""

from sip_node.compiled.operation cimport Operation
from sip_node.compiled.packed_rows cimport PackedRows
from sip_node.chip.records.packet_train cimport QueueTimes

cdef enum:
    CAUSES = 8


cdef packed struct OpRow:
    # The columns of `OPS`; texts as indices.
    int engine, name
    short cube, pe
    long long start_ps, end_ps, address, read_address, nbytes
    short flow_source, flow_target
    long long flow_sequence
    unsigned char flow_end
    long long requested_ps
    int cause
    long long link_ps
    int link
    long long memory_ps
    long long step


cdef class OpRows(PackedRows):
    cdef int causes[CAUSES]

    cdef int enter(
        self, str engine, str name, Operation *about, long long read_address, object flow,
        QueueTimes times
    ) except -1
    cdef int cause(self, int waited_for) except -1


cdef long long read_address_of(tuple inputs) except? -1
