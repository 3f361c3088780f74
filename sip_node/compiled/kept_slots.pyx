"""The slots of receive rings that a kernel uses in place, in C; see
`sip_node.programs.kept_slots`.
"""

from collections import deque

from sip_node.compiled.queue_state cimport QueueState, Slot
from sip_node.compiled.queue_table cimport QueuesByDirection


cdef class KeptMessage:
    """Slots that follow each other in the ring of a queue."""


cdef class KeptSlots:
    """The twin of `ReferenceKeptSlots`."""

    def __init__(self, QueuesByDirection queues not None, tcm):
        self.queues = queues
        self.first, self.behind_last = tcm.base, tcm.base + tcm.memory.nbytes
        self.behind, self.used = {}, {}

    def keep(self, str direction not None, long long nbytes):
        """See the reference."""
        return self.keep_next(<QueueState> self.queues._queues[direction], nbytes)

    def copied(self, str direction not None, long long address):
        """See the reference."""
        self.used[address] = message(<QueueState> self.queues._queues[direction], 0)

    def slot_copied(self, str direction not None):
        """See the reference."""
        self.slot_read(<QueueState> self.queues._queues[direction])

    def release(self, long long address):
        """See the reference."""
        return self.release_at(address)

    def release_all(self):
        """See the reference."""
        for address in tuple(self.used):
            self.release_at(address)

    cdef long long keep_next(self, QueueState queue, long long nbytes) except -2:
        """`keep` for classes in C; -1 is a message that is not kept."""
        cdef long long address = (<Slot> queue.arrived[0]).address
        cdef KeptMessage kept
        if not self.first <= address < self.behind_last:
            return -1
        if address + nbytes > queue.rx_base + queue.n_slots * queue.slot_size:
            return -1
        kept = message(queue, (nbytes + queue.slot_size - 1) // queue.slot_size)
        self.used[address] = kept
        behind = self.behind.get(queue.direction)
        if behind is None:
            behind = self.behind[queue.direction] = deque()
        behind.append(kept)
        return address

    cdef int slot_read(self, QueueState queue) except -1:
        """`slot_copied` for classes in C."""
        cdef KeptMessage slot
        behind = self.behind.get(queue.direction)
        if not behind:
            return self.queues.return_credit(queue)
        slot = message(queue, 1)
        slot.released = True
        behind.append(slot)
        return 0

    cdef bint release_at(self, long long address) except -1:
        """`release` for classes in C."""
        cdef KeptMessage kept = self.used.pop(address, None), oldest
        cdef QueueState queue
        cdef long long slot
        if kept is None:
            return False
        kept.released = True
        queue = kept.queue
        behind = self.behind.get(queue.direction)
        while behind:
            oldest = <KeptMessage> behind[0]
            if not oldest.released:
                break
            behind.popleft()
            for slot in range(oldest.slots):
                self.queues.return_credit(queue)
        return True


cdef KeptMessage message(QueueState queue, long long slots):
    """The next slots of a queue, which are in use."""
    cdef KeptMessage kept = KeptMessage.__new__(KeptMessage)
    kept.queue, kept.slots = queue, slots
    return kept
