"""The op log of one SIP in C: see op_log.pyx."""

from sip_node.chip.records.op_rows cimport OpRows
from sip_node.compiled.operation cimport Operation
from sip_node.compiled.packed_bytes cimport PackedBytes
from sip_node.chip.records.packet_train cimport QueueTimes
from sip_node.chip.records.step_rows cimport StepRows


cdef class OpLog:
    cdef object sink
    cdef object written
    cdef readonly object transferred
    cdef readonly object printed
    cdef readonly object recorder
    cdef object hash
    # The records of the chunk, and how many of their bytes are hashed.
    cdef PackedBytes encoded
    cdef Py_ssize_t in_chunk
    cdef Py_ssize_t hashed
    # In a run with records.
    cdef OpRows rows
    cdef readonly StepRows steps
    cdef public long long step
    cdef list recordings
    # Records that are kept to be entered again.
    cdef list keepers
    cdef readonly long long last_ps
    # The number of records, and the latest of them.
    cdef readonly long long count
    cdef long long latest_end_ps
    cdef int latest_cube
    cdef int latest_pe

    cpdef long long ended_now(self, long long now_ps, int cube, int pe) except -2
    cdef int enter(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis, QueueTimes times
    ) except -1
    cpdef int add_crossing(
        self, str engine, str name, long long start_ps, long long end_ps, long long address,
        long long nbytes, long long requested_ps, QueueTimes times, long long step
    ) except -1
    cdef int encode(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis
    ) except -1
    cdef int added(self, Operation *about) except -1
    cdef int pass_to_recordings(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis, QueueTimes times
    ) except -1
    cdef int keep(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis, QueueTimes times
    ) except -1
    cdef int collect(self, record, Operation *about, QueueTimes times) except -1
    cdef int pass_on_full(self) except -1
    cdef int hash_encoded(self) except -1
