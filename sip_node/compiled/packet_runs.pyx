"""Packets that wait for a message, in C; see `sip_node.chip.packet_runs`."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc

from sip_node.compiled.link_egress cimport LinkEnd
from sip_node.compiled.packet cimport Packet


cdef class OpenRun:
    """The twin of `ReferenceOpenRun`: its columns are made when they are read."""

    def __init__(self, long long number, bint is_first):
        self.number, self.is_first = number, is_first

    def __dealloc__(self):
        PyMem_Free(self.values)

    @property
    def heads_ps(self):
        """Arrivals of the heads."""
        return self.column(0)

    @property
    def tails_ps(self):
        """Times from the heads to the tails."""
        return self.column(1)

    @property
    def seqs(self):
        """Numbers of the packets on the link."""
        return self.column(2)

    @property
    def begins(self):
        """Offsets of the packets in the block."""
        return self.column(3)

    @property
    def sizes(self):
        """Bytes of the packets."""
        return self.column(4)

    cdef int append(
        self, long long head_ps, long long tail_ps, long long seq, Packet packet
    ) except -1:
        cdef Py_ssize_t capacity
        cdef long long *row
        cdef void *found
        if self.size == self.capacity:
            capacity = 2 * self.capacity + 16
            found = PyMem_Realloc(self.values, capacity * COLUMNS * sizeof(long long))
            if not found:
                raise MemoryError
            self.values, self.capacity = <long long *> found, capacity
        row = &self.values[self.size * COLUMNS]
        row[0], row[1], row[2] = head_ps, tail_ps, seq
        row[3], row[4] = packet.begin, packet.size
        self.size += 1
        if packet.last:
            self.ends = True
        return 0

    cdef tuple column(self, int column):
        cdef Py_ssize_t index
        return tuple([self.values[index * COLUMNS + column] for index in range(self.size)])


cdef class Runs(LinkEnd):
    """The first base of packet runs whose second base is `ReferencePacketRuns`.

    It replaces `arrive`; a run begins in Python, once for each transfer and step.
    """

    def bind(self, dict open_runs not None, dict numbers not None, begin, Py_ssize_t limit):
        """Take what the reference holds: the open run and the number of each transfer."""
        self.takes_early = True
        self.open_runs, self.numbers, self.begin, self.limit = open_runs, numbers, begin, limit

    cdef int land(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    ) except -1:
        run = self.open_runs.get(packet.transfer)
        if run is None or (<OpenRun> run).size == self.limit:
            run = self.begin(packet.transfer)
        (<OpenRun> run).append(head_ps, tail_ps - head_ps, seq, packet)
        if packet.last:
            self.numbers.pop(packet.transfer, None)
        return 0
