"""Packets that wait for a message, in C; see `sip_node.chip.packet_runs`."""

from cpython.mem cimport PyMem_Free, PyMem_Realloc

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.compiled.link_egress cimport LinkEnd
from sip_node.compiled.run_block cimport pack


cdef class OpenRun:
    """The packets of a transfer that wait for a message, with five words for each."""

    def __dealloc__(self):
        PyMem_Free(self.values)

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


cdef class Runs(LinkEnd):
    """The twin of `ReferencePacketRuns`; `message` is the class of messages."""

    def __init__(self, long long source, long long target, message, Py_ssize_t limit):
        self.takes_early = True
        self.source, self.target = source, target
        self.numbers, self.open_runs, self.runs = {}, {}, []
        self.message, self.limit = message, limit

    cdef int land(
        self, long long head_ps, long long source, long long seq, long long tail_ps, Packet packet
    ) except -1:
        found = self.open_runs.get(packet.transfer)
        cdef OpenRun run
        if found is None or (<OpenRun> found).size == self.limit:
            run = self.begin(packet.transfer)
        else:
            run = <OpenRun> found
        run.append(head_ps, tail_ps - head_ps, seq, packet)
        if packet.last:
            self.numbers.pop(packet.transfer, None)
        return 0

    cdef OpenRun begin(self, FabricTransfer transfer):
        """A run for the next packets of a transfer."""
        cdef OpenRun run = OpenRun.__new__(OpenRun)
        number = self.numbers.get(transfer)
        run.transfer, run.is_first = transfer, number is None
        if run.is_first:
            number = self.numbers[transfer] = self.transfers
            self.transfers += 1
        run.number = number
        self.open_runs[transfer] = run
        self.runs.append(run)
        return run

    def take(self):
        """See `ReferencePacketRuns.take`."""
        cdef OpenRun run
        cdef list taken = []
        runs, self.runs = self.runs, []
        self.open_runs.clear()
        for run in runs:
            message = self.message(
                run.values[0],
                self.source,
                self.target,
                run.values[2],
                pack(run, run.transfer),
                bytes(run.transfer.payload) if run.ends else b"",
            )
            taken.append((run.transfer.sip, message))
        return taken
