"""Arrivals of slots and of credits at a PE, in C; see `sip_node.chip.pe.ipcq`."""

from sip_node.chip.fabric.packet cimport FabricTransfer, Packet
from sip_node.compiled.calendar cimport Calendar, Event
from sip_node.compiled.hops cimport Endpoint
from sip_node.chip.op_log cimport OpLog
from sip_node.compiled.operation cimport FOR_NOTHING, Operation
from sip_node.compiled.queue_state cimport QueueState, new_slot

cdef enum:
    NORMAL = 1


cdef class Ring:
    """A ring and its queue."""


cdef class RingsByAddress:
    """The twin of `ReferenceRingsByAddress`: rings sorted by their first address."""

    def __cinit__(self):
        self.rings = []

    def add(self, long long base, QueueState queue not None):
        """See the reference."""
        cdef Ring ring = Ring.__new__(Ring), before
        cdef Py_ssize_t count
        ring.base, ring.queue = base, queue
        ring.end = base + queue.n_slots * queue.slot_size
        # Rings do not overlap, so only the last one that begins before our end can reach into us.
        count = self.rings_from(ring.end - 1)
        if count:
            before = <Ring> self.rings[count - 1]
            if before.end > base:
                return before.queue
        self.rings.insert(count, ring)
        return None

    def owner(self, long long address):
        """See the reference."""
        return self.at(address)

    cdef Py_ssize_t rings_from(self, long long address) except -1:
        """The number of rings that begin at or before an address."""
        cdef Py_ssize_t low = 0, high = len(self.rings), middle
        while low < high:
            middle = (low + high) >> 1
            if (<Ring> self.rings[middle]).base <= address:
                low = middle + 1
            else:
                high = middle
        return low

    cdef QueueState at(self, long long address):
        """`owner` for classes in C."""
        cdef Py_ssize_t count = self.rings_from(address)
        cdef Ring ring
        if not count:
            return None
        ring = <Ring> self.rings[count - 1]
        return ring.queue if address < ring.end else None


cdef class IpcqArrivals(Endpoint):
    """The first base of an IPCQ whose second base is `ReferencePeIpcq`."""

    def bind(self, Calendar engine not None, context, owner, ready, kinds, elements):
        """Take what the reference holds; `kinds` are those of arrivals and of credits."""
        self.calendar, self.number = engine, engine.enlist(self)
        self.log, self.owner, self.ready = context.log, owner, ready
        self.arrival, self.credit = kinds
        self.elements = elements
        self.cube, self.pe = context.coordinates.cube, context.coordinates.pe

    cdef int take(self, Packet packet, long long tail_ps) except -1:
        """See `accept` of the reference."""
        cdef Event event
        # Counters change when the whole packet is here and the IPCQ has processed it.
        event.actor = self.number
        return self.calendar.insert(tail_ps + self._overhead_ps, NORMAL, event, packet)

    cdef int act(self, Event event, object subject) except -1:
        cdef FabricTransfer transfer = (<Packet> subject).transfer
        cdef int kind = transfer.kind
        if kind == self.credit:
            return self.owner_of(self._send_rings, transfer.address).add_credit()
        if kind == self.arrival:
            return self.arrived(transfer)
        self.ready(subject)
        return 0

    cdef int arrived(self, FabricTransfer slot) except -1:
        """See the reference."""
        cdef QueueState queue = self.owner_of(self._receive_rings, slot.address)
        cdef Operation about
        cdef long long offset
        about.start_ps, about.end_ps = slot.sent_ps, self.calendar.now_ps
        about.address, about.nbytes = slot.address, slot.total
        about.cube, about.pe, about.checksum, about.flow_end = self.cube, self.pe, 0, True
        about.requested_ps, about.waited_for = about.start_ps, FOR_NOTHING
        self.log.enter(
            "pe_ipcq", "arrival", &about, (), "", (), (), slot.flow, None,
            None if slot.train is None else slot.train.times,
        )
        # The last packet of a slot names an address inside of it, and the arrival repeats that.
        offset = slot.address - queue.rx_base
        return queue.put(
            new_slot(
                queue.rx_base + offset // queue.slot_size * queue.slot_size,
                slot.total,
                self.elements[slot.element],
                slot.call,
            )
        )

    cdef QueueState owner_of(self, RingsByAddress rings, long long address):
        """The queue whose ring holds an address; the reference raises where there is none."""
        cdef QueueState queue = rings.at(address)
        return self.owner(rings, address) if queue is None else queue
