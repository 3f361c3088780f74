"""Records that are kept to be entered again, in rows: see kept_records.pyx."""

from runtime.core.compiled.byte_buffer cimport ByteBuffer
from sip_node.chip.records.op_log cimport OpLog
from sip_node.chip.records.packet_train cimport QueueTimes
from sip_node.compiled.operation cimport Operation
from sip_node.compiled.packed_bytes cimport PackedBytes
from sip_node.kernel.containers.int_array cimport IntArray

cdef enum:
    NO_PART = -1
    NO_TIMES = -1
    NO_STEP = -1
    # A form with its objects, about.
    FORM_BYTES = 1 << 10


cdef struct KeptRow:
    # Times count from the begin of the records.
    long long start_ps
    long long end_ps
    int form
    # The first of its slots.
    unsigned int slot
    short cube
    short pe
    unsigned int checksum


cdef packed struct KeptSlot:
    # The address of a block, which moves with a part of the records; or another number of a record.
    long long value
    int part


cdef struct KeptWait:
    # What an operation has waited for, how long its packets have queued, and the call that issued
    # it; `link` is an index of `links`, or NO_TIMES. Steps count from the begin of the records. In
    # a run with records.
    long long requested_ps
    long long link_ps
    long long memory_ps
    int step
    short waited_for
    short link


cdef class RecordForm:
    # The fields that records have in common; addresses and numbers are those of the first one.
    cdef str engine, name, dtype
    cdef tuple shape, strides, inputs
    cdef object axis
    cdef long long nbytes
    cdef bint flow_end, has_flow
    # The bytes of a record with holes, and where these are.
    cdef bytes encoded
    cdef IntArray holes
    # The inputs that are in slots, behind those of the address and the flow, by their places; and
    # of inputs that are blocks, with the result before them, the bytes from the first to the last.
    cdef tuple places
    cdef IntArray spans
    cdef Py_ssize_t first_input


cdef class KeptRecords:
    cdef readonly long long begin_ps
    cdef readonly Py_ssize_t size
    cdef readonly bint is_full
    cdef readonly dict numbers
    cdef bint has_waits
    cdef long long first_step, most_bytes
    cdef ByteBuffer rows, slots, waits
    cdef list forms
    cdef dict by_encoded
    cdef PackedBytes scratch
    cdef IntArray scratch_holes
    cdef dict links
    cdef list link_names
    # How far each part has moved, and how many flows of two SIPs there were since.
    cdef IntArray distances
    cdef dict later_flows
    cdef readonly Py_ssize_t parts

    cdef int keep(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis, QueueTimes times
    ) except -1
    cdef int find_form(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis
    ) except -1
    cdef int add_slot(self, long long value) except -1
    cdef int add_number(self, Operation *about, object number, Py_ssize_t place) except -1
    cdef int add_wait(self, Operation *about, QueueTimes times) except -1
    cdef int encode(
        self, PackedBytes to, RecordForm form, Operation *about, KeptSlot *slot
    ) except -1
    cdef int collect(
        self, OpLog log, RecordForm form, Operation *about, KeptSlot *slot, QueueTimes times
    ) except -1
    cdef tuple inputs_of(self, RecordForm form, KeptSlot *slot)
    cdef QueueTimes wait_of(
        self, Py_ssize_t index, long long begin_ps, long long steps, Operation *about,
        QueueTimes times
    )
    cdef long long value(self, KeptSlot *slot) noexcept
    cdef long long flow_number(self, KeptSlot *slot) except? -1
