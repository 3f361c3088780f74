"""Which transfers from other SIPs may enter a chip, in C; see `sip_node.chip.packet_rules`.

Here a message either keeps all rules or does not; which rule it breaks, the reference finds.
"""

from cpython.bytes cimport PyBytes_CheckExact

from sip_node.compiled.int128 cimport int128
from sip_node.compiled.run_block cimport RunBlock, is_valid, open_block


cdef class Rules:
    """The first base of a class whose second base is `ReferencePacketRules`."""

    def bind(self, long long sips, tuple credited not None, dict memories not None,
             frozenset senders not None, frozenset receivers not None,
             frozenset to_memory not None):
        """Take what the reference holds.

        `credited` are the kind of credits, and the node that sends and receives them, or -1.
        """
        self.sips = sips
        self.credit_kind, self.credit_node = credited
        self.memories, self.senders, self.receivers = memories, senders, receivers
        self.to_memory = to_memory

    def fault(self, message):
        """See `ReferencePacketRules.fault`."""
        if self.allows(message):
            return ""
        fault = super().fault(message)
        assert fault, f"the reference finds no fault in {message}"
        return fault

    cdef bint allows(self, message) except -1:
        cdef RunBlock run
        body = message.body
        if not PyBytes_CheckExact(body) or not open_block(<bytes> body, &run):
            return False
        if not is_valid(&run, message.time_ps, message.seq, len(message.payload)):
            return False
        return run.header == NULL or self.may_enter(&run)

    cdef bint may_enter(self, RunBlock *run) except -1:
        """Whether a valid header names what exists."""
        cdef const long long *header = run.header
        cdef long long kind = header[0], source_node = header[2], node = header[4]
        if header[1] >= self.sips or header[3] >= self.sips:
            return False
        if run.flow != NULL and (run.flow[0] >= self.sips or run.flow[1] >= self.sips):
            return False
        if kind == self.credit_kind:
            return source_node == node == self.credit_node
        if source_node not in self.senders:
            return False
        return self.fits(run) if kind in self.to_memory else node in self.receivers

    cdef bint fits(self, RunBlock *run) except -1:
        """Whether a transfer accesses no more than one memory."""
        cdef long long base, sip_bytes, nbytes
        cdef int128 offset
        memory = self.memories.get(run.header[4])
        if memory is None:
            return False
        base, sip_bytes, nbytes = memory
        offset = <int128> run.header[5] - base - <int128> run.header[3] * sip_bytes
        return 0 <= offset <= nbytes - extent(run.header[7], run.rows)


cdef int128 extent(long long nbytes, const long long *rows) noexcept:
    """Bytes from the address of a transfer to the last byte of memory which it accesses."""
    cdef long long row_bytes, row, column, plane = 0
    cdef int128 in_row
    if rows == NULL or not nbytes:
        return nbytes
    row_bytes = rows[0]
    row, column = (nbytes - 1) // row_bytes, (nbytes - 1) % row_bytes
    if rows[2]:
        plane = row // rows[2]
        row = rows[2] - 1 if plane else row % rows[2]
    in_row = row_bytes if row or plane else column + 1
    return <int128> plane * rows[3] + <int128> row * rows[1] + in_row
