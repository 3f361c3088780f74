"""The queue pairs of a table of a PE, in C; see `sip_node.chip.pe.queue_table`."""

from sip_node.compiled.calendar cimport Calendar
from sip_node.chip.fabric.packet cimport FabricTransfer, new_packet, new_transfer
from sip_node.kernel.outlet cimport Outlet
from sip_node.compiled.queue_state cimport QueueState, Slot


cdef class QueuesByDirection:
    """The first base of a table whose second base is `ReferenceQueueTable`.

    It replaces what every slot needs: its announcement, and the return of its credit.
    """

    def bind(self, Calendar engine not None, context, credit_kind):
        """Take what the reference holds; `credit_kind` is the kind of a transfer with a credit."""
        self.calendar, self.outlet = engine, Outlet(context.fabric, context.node)
        self.locate_pe, self.credit_kind = context.locate_pe, credit_kind
        self.sip, self.node = context.coordinates.sip, context.node

    def full_slots(self, str direction not None):
        """See the reference."""
        return len((<QueueState> self._queues[direction]).arrived)

    def take(self, str direction not None):
        """See the reference."""
        arrived = (<QueueState> self._queues[direction]).arrived
        return arrived.popleft() if arrived else None

    def release(self, str direction not None):
        """See the reference."""
        self.return_credit(<QueueState> self._queues[direction])

    def _announce(self, str direction):
        listener = self._receiving.get(direction) if self._receiving else None
        if listener is None:
            listener = self.listener
            if self._posted:
                head = <Slot> (<QueueState> self._queues[direction]).arrived[0]
                listener = self._posted.get(head.call, listener)
        if listener is not None:
            listener(direction)

    def _notify(self, pair, kind, long long address, str call=""):
        self.notify(<QueueState> self._queues[pair.direction], kind, address, call)

    cdef int return_credit(self, QueueState queue) except -1:
        """`release` for classes in C."""
        return self.notify(queue, self.credit_kind, queue.read_out(), "")

    cdef int notify(self, QueueState queue, object kind, long long address, str call) except -1:
        """Send a control packet to the peer of a queue."""
        cdef FabricTransfer notice
        cdef long long now_ps = self.calendar.now_ps
        if queue.peer_node < 0:
            queue.peer_sip, queue.peer_node = self.locate_pe(queue.queue_pair.peer)
        notice = new_transfer(kind, self.sip, self.node, queue.peer_sip, queue.peer_node)
        notice.address, notice.call, notice.sent_ps = address, call, now_ps
        return self.outlet.send(
            new_packet(notice, 0, queue.queue_pair.credit_bytes, True), now_ps
        )
