"""Reads the times and the component of every record of an op log; see record_index.py."""

from coordinator.compiled.op_records cimport PackedRecord, take_record
from coordinator.compiled.packed_values cimport Cursor, as_integer, take_length
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.limits cimport INT_MAX


cdef class RecordIndex:
    """See record_index.py."""

    cdef object track
    # By engine, cube and PE, the number of a component of the SIP `sip`.
    cdef dict numbers
    cdef dict engines
    cdef object sip

    def __init__(self, track):
        self.track, self.numbers, self.engines, self.sip = track, {}, {}, None

    def read(self, sip, bytes chunk not None):
        """See record_index.py."""
        cdef const unsigned char *start = <const unsigned char *> PyBytes_AS_STRING(chunk)
        cdef Cursor cursor
        cdef PackedRecord record
        cdef Py_ssize_t index, count
        cdef bytes starts_ps, ends_ps, tracks, offsets
        cursor.position, cursor.end = start, start + PyBytes_GET_SIZE(chunk)
        count = take_length(&cursor)
        # A record has more bytes than fields.
        if count > PyBytes_GET_SIZE(chunk) or PyBytes_GET_SIZE(chunk) > INT_MAX:
            raise ValueError("the end of the bytes")
        starts_ps = PyBytes_FromStringAndSize(NULL, count * sizeof(long long))
        ends_ps = PyBytes_FromStringAndSize(NULL, count * sizeof(long long))
        tracks = PyBytes_FromStringAndSize(NULL, count * sizeof(unsigned int))
        offsets = PyBytes_FromStringAndSize(NULL, count * sizeof(unsigned int))
        if sip != self.sip:
            self.sip, self.numbers = sip, {}
        for index in range(count):
            (<unsigned int *> PyBytes_AS_STRING(offsets))[index] = cursor.position - start
            take_record(&cursor, &record)
            (<long long *> PyBytes_AS_STRING(starts_ps))[index] = as_integer(&record.start_ps)
            (<long long *> PyBytes_AS_STRING(ends_ps))[index] = as_integer(&record.end_ps)
            (<unsigned int *> PyBytes_AS_STRING(tracks))[index] = self.number(&record)
        if cursor.position != cursor.end:
            raise ValueError("more bytes than those of the records")
        return starts_ps, ends_ps, tracks, offsets

    cdef unsigned int number(self, PackedRecord *record) except? 0xffffffff:
        """The number of the component of a record."""
        cdef bytes engine = record.engine.start[:record.engine.nbytes]
        found_engine = self.engines.get(engine)
        if found_engine is None:
            found_engine = self.engines[engine] = engine.decode()
        key = (found_engine, as_integer(&record.cube), as_integer(&record.pe))
        found = self.numbers.get(key)
        if found is None:
            found = self.numbers[key] = self.track(self.sip, key[1], key[2], found_engine)
        return found
