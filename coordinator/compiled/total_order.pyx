"""The operations of all SIPs in one order, in C, and the lanes of a timeline.

See `coordinator.watch.op_logs` and `coordinator.report.log_text`.
"""

from cpython.array cimport array
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from libc.stdlib cimport qsort

from runtime.core.compiled.memory_blocks cimport resized


cdef struct Lane:
    # When its latest operation ends, and the next lane of the component, or -1.
    long long end_ps
    int next


cdef class TotalOrder:
    """The operations of `logs`, an `OpLogs`, in the order of `(start_ps, sip, index)`."""

    def __init__(self, logs):
        cdef Py_ssize_t total = 0
        self.chunks, self.count = [], 0
        for log in logs.of_sips.values():
            total += len(log.starts_ps)
        self.operations = <Operation *> resized(NULL, total * sizeof(Operation))
        for sip, log in logs.of_sips.items():
            for number in range(len(log.chunks)):
                self.add_chunk(log, number, sip)
        qsort(self.operations, self.count, sizeof(Operation), &compare)
        self.assign_lanes(logs.tracks)

    def __dealloc__(self):
        PyMem_Free(self.operations)

    cdef int add_chunk(self, object log, Py_ssize_t number, unsigned int sip) except -1:
        """The operations of a chunk of the log of a SIP."""
        cdef bytes chunk = log.chunks[number]
        cdef const unsigned char *start = <const unsigned char *> PyBytes_AS_STRING(chunk)
        # Not typed memoryviews: the code for them takes longer to compile than all else here.
        cdef array columns = log.starts_ps
        cdef const long long *starts_ps = columns.data.as_longlongs
        cdef const long long *ends_ps = (<array?> log.ends_ps).data.as_longlongs
        cdef const unsigned int *tracks = (<array?> log.tracks).data.as_uints
        cdef const unsigned int *offsets = (<array?> log.offsets).data.as_uints
        cdef Py_ssize_t index, first = log.firsts[number]
        cdef Py_ssize_t end = log.firsts[number + 1] if number + 1 < len(log.firsts) else (
            len(columns)
        )
        cdef Operation *operation
        self.chunks.append(chunk)
        for index in range(first, end):
            operation = &self.operations[self.count]
            operation.start_ps, operation.end_ps = starts_ps[index], ends_ps[index]
            operation.sip, operation.index, operation.track = sip, index, tracks[index]
            operation.packed.position = start + offsets[index]
            operation.packed.end = start + PyBytes_GET_SIZE(chunk)
            self.count += 1
        return 0

    cdef int assign_lanes(self, list tracks) except -1:
        """The lane of every operation: the first of its component that is free at its start."""
        cdef Py_ssize_t index
        cdef int position, lane, count = 0
        cdef Operation *operation
        cdef int *place
        # There are at most as many lanes as operations.
        cdef Lane *lanes = <Lane *> PyMem_Malloc(max(1, self.count) * sizeof(Lane))
        cdef int *first = <int *> PyMem_Malloc(max(1, len(tracks)) * sizeof(int))
        if not lanes or not first:
            PyMem_Free(lanes)
            PyMem_Free(first)
            raise MemoryError
        self.lanes = []
        try:
            for index in range(len(tracks)):
                first[index] = -1
            for index in range(self.count):
                operation = &self.operations[index]
                place, position = &first[operation.track], 0
                while place[0] >= 0 and lanes[place[0]].end_ps > operation.start_ps:
                    place, position = &lanes[place[0]].next, position + 1
                if place[0] < 0:
                    place[0] = count
                    lanes[count].next = -1
                    self.lanes.append((tracks[operation.track], position))
                    count += 1
                lanes[place[0]].end_ps = operation.end_ps
                operation.lane = place[0]
        finally:
            PyMem_Free(lanes)
            PyMem_Free(first)
        return 0


cdef int compare(const void *left, const void *right) noexcept nogil:
    cdef const Operation *one = <const Operation *> left
    cdef const Operation *other = <const Operation *> right
    if one.start_ps != other.start_ps:
        return 1 if one.start_ps > other.start_ps else -1
    if one.sip != other.sip:
        return 1 if one.sip > other.sip else -1
    return (one.index > other.index) - (one.index < other.index)
