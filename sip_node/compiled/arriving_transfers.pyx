"""Transfers that arrive from other LPs, in C; see `sip_node.chip.arriving_transfers`.

Here all rules are checked before anything changes. Where one is broken, the reference receives the
message instead, and raises the error.
"""

from sip_node.chip.fabric.packet cimport FabricTransfer
from sip_node.compiled.crossings cimport Crossings
from sip_node.compiled.run_block cimport (
    RunBlock,
    carries,
    has_many_packets,
    is_valid,
    open_block,
    requests,
    transfer_of,
)


cdef class Partial:
    """The twin of `ReferencePartialTransfer`."""

    def __init__(self, FabricTransfer transfer not None):
        self.transfer = transfer


cdef class Arrivals:
    """The first base of a class whose second base is `ReferenceArrivingTransfers`."""

    def bind(self, dict begun not None, dict numbers not None):
        """Take what the reference holds: transfers that have begun, and the next by link."""
        self.begun, self.numbers = begun, numbers

    def receive(self, message, boundary):
        """See `ReferenceArrivingTransfers.receive`."""
        if not isinstance(boundary, Crossings) or not self.take(message, <Crossings> boundary):
            super().receive(message, boundary)

    cdef bint take(self, message, Crossings ports) except -1:
        """Receive the packets of a message, unless one breaks a rule."""
        cdef RunBlock run
        cdef Partial partial
        cdef long long source = message.source
        body, payload = message.body, message.payload
        if not open_block(<bytes?> body, &run):
            return False
        if not is_valid(&run, message.time_ps, message.seq, len(payload)):
            return False
        partial = self.continued(message, &run)
        if partial is None or not continues(partial, &run, len(payload)):
            return False
        key = source, message.target, run.number
        if run.header != NULL:
            self.numbers[source, message.target] = run.number + 1
            self.begun[key] = partial
        if run.ends:
            del self.begun[key]
            partial.transfer.payload = payload
        ports.land_run(source, partial.transfer, &run)
        return True

    cdef Partial continued(self, message, RunBlock *run):
        """The transfer that a run belongs to; None where it is not due."""
        if run.header == NULL:
            return self.begun.get((message.source, message.target, run.number))
        if self.numbers.get((message.source, message.target), 0) != run.number:
            return None
        return Partial(transfer_of(run))


cdef bint continues(Partial partial, RunBlock *run, Py_ssize_t payload_bytes) except -1:
    """Whether a run may be the next of its transfer; counts its bytes."""
    cdef long long total = partial.transfer.total, nbytes = partial.nbytes, last = 0
    cdef long long kind = partial.transfer.kind
    cdef Py_ssize_t index
    for index in range(run.packets):
        nbytes += run.sizes[index]
    if carries(kind):
        for index in range(run.packets):
            last = max(last, run.begins[index] + run.sizes[index])
        if last > total or nbytes > total or (run.ends and nbytes < total):
            return False
        if payload_bytes and payload_bytes != total:
            return False
    elif payload_bytes or not (has_many_packets(kind) or (run.ends and run.packets == 1)):
        return False
    elif requests(kind):
        for index in range(run.packets):
            if run.begins[index] >= total:
                return False
    partial.nbytes = nbytes
    return True
