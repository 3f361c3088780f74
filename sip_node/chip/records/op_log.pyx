"""The op log of one SIP in C. Its version in Python, `op_log.py`, has the rules.

A record is encoded when it is added: its bytes are hashed, and are what a sink gets. Classes in C
enter its fields; an `OpRecord` is made of them only where a recording collects them.
"""

from hashlib import sha256

from runtime.core.trace import IO_CHIPLET, NO_PE, OpRecord
from sip_node.chip.records.kept.kept_records cimport KeptRecords
from sip_node.chip.records.op_rows import waited_for
from sip_node.chip.records.op_rows cimport read_address_of
from sip_node.chip.records.kept.record_bytes cimport add_record
from sip_node.compiled.operation cimport FOR_LINK
from sip_node.compiled.struct_fields cimport field_at, offset_of

cpdef enum:
    CHUNK_RECORDS = 1024

cdef enum:
    HASHED_BYTES = 0x10000

# The offsets of the fields of a record, in their order.
cdef Py_ssize_t[16] FIELDS = [offset_of(OpRecord, name) for name in OpRecord.__struct_fields__]


cdef class OpLog:
    """Collects records as bytes, and keeps a running hash of them."""

    def __init__(self, sink, written=None, transferred=None, printed=None, recorder=None):
        self.sink, self.written, self.transferred = sink, written, transferred
        self.printed, self.recorder = printed, recorder
        self.rows = None if recorder is None else OpRows(recorder)
        self.steps = None if recorder is None else StepRows(recorder)
        self.encoded, self.hash = PackedBytes(), sha256()
        self.recordings, self.keepers, self.step = [], [], -1

    def add(
        self, record not None, requested_ps=None, cause="", QueueTimes times=None,
        long long step=-1,
    ):
        cdef Operation about
        cdef Py_ssize_t *fields = FIELDS
        if type(record) is not OpRecord:
            raise TypeError(f"{record!r} is no op record")
        about.start_ps, about.end_ps = field_at(record, fields[2]), field_at(record, fields[3])
        about.cube, about.pe = field_at(record, fields[4]), field_at(record, fields[5])
        about.address, about.nbytes = field_at(record, fields[6]), field_at(record, fields[7])
        about.flow_end, about.checksum = field_at(record, fields[11]), field_at(record, fields[15])
        about.requested_ps = about.start_ps if requested_ps is None else requested_ps
        about.waited_for, about.step = waited_for(cause), step
        self.encode(
            engine=field_at(record, fields[0]), name=field_at(record, fields[1]), about=&about,
            shape=field_at(record, fields[8]), dtype=field_at(record, fields[9]),
            strides=field_at(record, fields[13]), inputs=field_at(record, fields[12]),
            flow=field_at(record, fields[10]), axis=field_at(record, fields[14]),
        )
        if self.rows is not None:
            self.rows.enter(
                engine=field_at(record, fields[0]), name=field_at(record, fields[1]), about=&about,
                read_address=read_address_of(field_at(record, fields[12])),
                flow=field_at(record, fields[10]), times=times,
            )
        if self.recordings:
            self.collect(record, &about, times)
        if self.keepers:
            self.keep(
                engine=field_at(record, fields[0]), name=field_at(record, fields[1]), about=&about,
                shape=field_at(record, fields[8]), dtype=field_at(record, fields[9]),
                strides=field_at(record, fields[13]), inputs=field_at(record, fields[12]),
                flow=field_at(record, fields[10]), axis=field_at(record, fields[14]), times=times,
            )
        self.pass_on_full()

    cdef int enter(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis, QueueTimes times
    ) except -1:
        """Add the record with these fields; its packets have queued for `times`."""
        self.encode(engine, name, about, shape, dtype, strides, inputs, flow, axis)
        if self.rows is not None:
            self.rows.enter(engine, name, about, read_address_of(inputs), flow, times)
        if self.recordings or self.keepers:
            self.pass_to_recordings(
                engine, name, about, shape, dtype, strides, inputs, flow, axis, times
            )
        self.pass_on_full()
        return 0

    cpdef int add_crossing(
        self, str engine, str name, long long start_ps, long long end_ps, long long address,
        long long nbytes, long long requested_ps, QueueTimes times, long long step
    ) except -1:
        cdef Operation about
        about.start_ps, about.end_ps = start_ps, end_ps
        about.address, about.nbytes = address, nbytes
        about.cube, about.pe, about.checksum, about.flow_end = IO_CHIPLET, NO_PE, 0, False
        about.requested_ps, about.waited_for, about.step = requested_ps, FOR_LINK, step
        return self.enter(engine, name, &about, (), "", (), (), None, None, times)

    cpdef long long ended_now(self, long long now_ps, int cube, int pe) except -2:
        if (
            not self.count or self.latest_end_ps != now_ps
            or self.latest_cube != cube or self.latest_pe != pe
        ):
            return -1
        return self.count - 1

    def begin_recording(self, records=None):
        if records is None:
            records = []
        self.recordings.append((records, []))
        return records

    def waits(self, records):
        """The arguments of `add` behind each record of a recording; the cause by number."""
        for each, waits in self.recordings:
            if each is records:
                return waits
        raise ValueError("records of no recording")

    def end_recording(self, records):
        self.recordings = [each for each in self.recordings if each[0] is not records]

    def begin_keeping(self, KeptRecords records not None):
        """Let records receive every one that is added from now on."""
        self.keepers.append(records)

    def end_keeping(self, records not None):
        self.keepers = [each for each in self.keepers if each is not records]

    def add_written(self, data):
        if self.written is not None:
            self.written(data)

    def flush(self):
        self.hash_encoded()
        if self.rows is not None:
            self.rows.pass_on()
            self.steps.pass_on()
        if self.in_chunk and self.sink is not None:
            self.sink(self.encoded.taken_as_array(self.in_chunk))
            self.hashed = self.in_chunk = 0

    def digest(self, memories):
        self.flush()
        total = self.hash.copy()
        for memory in memories:
            for offset, content in memory.contents():
                total.update(f"{memory.name}@{offset}".encode())
                total.update(content)
        return total.hexdigest()

    cdef int encode(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis
    ) except -1:
        add_record(
            self.encoded, engine, name, about, shape, dtype, strides, inputs, flow, axis, None
        )
        return self.added(about)

    cdef int added(self, Operation *about) except -1:
        """The bytes of a record have been added to the others."""
        cdef PackedBytes to = self.encoded
        if about.end_ps > self.last_ps:
            self.last_ps = about.end_ps
        self.count += 1
        self.latest_end_ps, self.latest_cube, self.latest_pe = about.end_ps, about.cube, about.pe
        self.in_chunk += 1
        if to.size - self.hashed >= HASHED_BYTES:
            self.hash_encoded()
        return 0

    cdef int collect(self, record, Operation *about, QueueTimes times) except -1:
        """Keep a record for those who collect them."""
        cdef QueueTimes so_far = None
        if times is not None:
            # The packets of a slot go on when its record is entered, and may queue again.
            so_far = QueueTimes()
            so_far.add(times)
        for records, waits in self.recordings:
            records.append(record)
            waits.append((about.requested_ps, about.waited_for, so_far, about.step))
        return 0

    cdef int pass_to_recordings(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis, QueueTimes times
    ) except -1:
        """Let those have a record who collect or keep them."""
        if self.recordings:
            self.collect(
                OpRecord(
                    engine, name, about.start_ps, about.end_ps, about.cube, about.pe,
                    about.address, about.nbytes, shape, dtype, flow, about.flow_end, inputs,
                    strides, axis, about.checksum,
                ),
                about, times,
            )
        return self.keep(engine, name, about, shape, dtype, strides, inputs, flow, axis, times)

    cdef int keep(
        self, str engine, str name, Operation *about, tuple shape, str dtype, tuple strides,
        tuple inputs, object flow, object axis, QueueTimes times
    ) except -1:
        for records in self.keepers:
            (<KeptRecords> records).keep(
                engine, name, about, shape, dtype, strides, inputs, flow, axis, times
            )
        return 0

    cdef int pass_on_full(self) except -1:
        """Pass on a chunk that is full, with the rows of its records."""
        if self.in_chunk >= CHUNK_RECORDS and self.sink is not None:
            self.flush()
        return 0

    cdef int hash_encoded(self) except -1:
        if self.encoded.size > self.hashed:
            self.hash.update(self.encoded.view(self.hashed))
            if self.sink is None:
                self.encoded.clear()
            self.hashed = self.encoded.size
        return 0
