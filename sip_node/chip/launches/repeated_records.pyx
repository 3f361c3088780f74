"""The records of a launch, which are entered again at a later time, with other addresses and sums.
"""

from sip_node.compiled.struct_fields cimport field_at, offset_of
from runtime.core.trace import OpRecord

# The offsets of the fields of a record, in their order.
cdef Py_ssize_t[16] FIELDS = [offset_of(OpRecord, name) for name in OpRecord.__struct_fields__]


cdef class RepeatedRecord:
    """The record of an operation."""


cdef class RepeatedRecords:
    """Records of `log`, with the `waits` of each, of a launch that began at `base_ps`, behind
    `steps` steps of programs.
    """

    def __init__(
        self, OpLog log not None, list records not None, list waits, long long base_ps,
        long long steps,
    ):
        cdef RepeatedRecord made
        cdef Py_ssize_t *fields = FIELDS
        self.log, self.records = log, []
        for record, waited in zip(records, waits):
            made = RepeatedRecord.__new__(RepeatedRecord)
            made.engine, made.name = field_at(record, fields[0]), field_at(record, fields[1])
            made.about.start_ps = <long long> field_at(record, fields[2]) - base_ps
            made.about.end_ps = <long long> field_at(record, fields[3]) - base_ps
            made.about.cube = field_at(record, fields[4])
            made.about.pe = field_at(record, fields[5])
            made.about.address = field_at(record, fields[6])
            made.about.nbytes = field_at(record, fields[7])
            made.shape, made.dtype = field_at(record, fields[8]), field_at(record, fields[9])
            made.first_flow = made.flow = field_at(record, fields[10])
            made.about.flow_end = field_at(record, fields[11])
            made.inputs, made.strides = field_at(record, fields[12]), field_at(record, fields[13])
            made.axis = field_at(record, fields[14])
            made.about.checksum = field_at(record, fields[15])
            made.about.requested_ps, made.about.waited_for, made.times, made.about.step = waited
            made.about.requested_ps -= base_ps
            if made.about.step >= 0:
                made.about.step -= steps
            self.records.append(made)

    def __len__(self):
        return len(self.records)

    def relocate(self, Py_ssize_t index, long long address, tuple inputs not None):
        """Let a record be about other blocks; with -1 its result stays where it is."""
        cdef RepeatedRecord record = self.records[index]
        record.inputs = inputs
        if address >= 0:
            record.about.address = address

    def number_flows(self, dict later not None):
        """Let the numbers of transfers to other SIPs rise by `later[source sip, target sip]`."""
        cdef RepeatedRecord record
        for record in self.records:
            if record.first_flow is not None:
                source, target, number = record.first_flow
                record.flow = (source, target, number + later[source, target])

    def enter(
        self, Py_ssize_t first, Py_ssize_t behind, long long base_ps, long long steps,
        const unsigned int[:] checksums
    ):
        """Enter the records from `first` to before `behind`, of a launch that began at `base_ps`,
        behind `steps` steps.

        Without `checksums` they have those of the first time.
        """
        cdef RepeatedRecord record
        cdef Operation about
        cdef Py_ssize_t index
        for index in range(first, behind):
            record = self.records[index]
            about = record.about
            about.start_ps += base_ps
            about.end_ps += base_ps
            about.requested_ps += base_ps
            if about.step >= 0:
                about.step += steps
            if checksums is not None:
                about.checksum = checksums[index]
            self.log.enter(
                record.engine, record.name, &about, record.shape, record.dtype, record.strides,
                record.inputs, record.flow, record.axis, record.times,
            )
