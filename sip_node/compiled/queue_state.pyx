"""One queue pair of a PE at work, in C; see `sip_node.chip.pe.queue_state`."""

cimport cython
from collections import deque

from sip_node.chip.completion cimport AnyCompletion as Completion


@cython.freelist(64)
cdef class Slot:
    """The twin of `ReferenceSlot`."""

    def __init__(self, long long address, long long nbytes, str dtype not None, str call not None):
        self.address, self.nbytes, self.dtype, self.call = address, nbytes, dtype, call


cdef class QueueState:
    """The twin of `ReferenceQueueState`."""

    def __init__(self, str table not None, pair, announce):
        self.table, self.announce = table, announce
        self.pair = pair
        self.credits = self.n_slots
        self.arrived, self.early = deque(), {}
        self.peer_node = -1

    @property
    def pair(self):
        """The queue pair."""
        return self.queue_pair

    @pair.setter
    def pair(self, pair):
        self.queue_pair, self.direction = pair, pair.direction
        self.n_slots, self.slot_size = pair.n_slots, pair.slot_size
        self.rx_base = -1 if pair.rx_base is None else pair.rx_base
        self.tx_base = -1 if pair.tx_base is None else pair.tx_base

    @property
    def at_rest(self):
        """See the reference."""
        return self.credits == self.n_slots and self.filled == self.taken

    def acquire(self):
        """See the reference."""
        cdef Completion done = Completion()
        cdef long long address = self.reserve()
        if address >= 0:
            done.complete(address)
        else:
            self.sender = done
        return done

    def fill(self, Slot slot not None):
        """See the reference."""
        self.put(slot)

    def credit(self):
        """See the reference."""
        self.add_credit()

    def release(self):
        """See the reference."""
        return self.read_out()

    cdef long long reserve(self) except -1:
        """The address of a free slot of the peer's ring, reserved now; -2 without a credit."""
        cdef long long index = self.sent % self.n_slots
        if self.credits <= 0:
            return -2
        assert self.tx_base >= 0, "a queue that sends has a ring at the peer"
        self.credits -= 1
        self.sent += 1
        return self.tx_base + index * self.slot_size

    cdef int put(self, Slot slot) except -1:
        """`fill` for classes in C."""
        cdef long long address = slot.address
        if address != self.in_own_ring(self.filled):
            self.early[address] = slot
            return 0
        # In the order of the ring: a slot without an earlier one still to come needs no lookup.
        while slot is not None:
            self.filled += 1
            self.arrived.append(slot)
            # After the slot is in the list, since the listener takes it in this call.
            self.announce(self.direction)
            if not self.early:
                break
            slot = self.early.pop(self.in_own_ring(self.filled), None)
        return 0

    cdef int add_credit(self) except -1:
        """`credit` for classes in C."""
        cdef Completion sender = self.sender
        self.credits += 1
        if sender is not None:
            self.sender = None
            sender.complete(self.reserve())
        return 0

    cdef long long read_out(self) except -1:
        """`release` for classes in C."""
        cdef long long address = self.in_own_ring(self.taken)
        self.taken += 1
        return address

    cdef long long in_own_ring(self, long long number) except -1:
        """The address of slot number `number`."""
        assert self.rx_base >= 0, "a queue that receives has a ring"
        return self.rx_base + number % self.n_slots * self.slot_size


cdef Slot new_slot(long long address, long long nbytes, str dtype, str call):
    """A slot, constructed without the call of a Python class."""
    cdef Slot slot = Slot.__new__(Slot)
    slot.address, slot.nbytes, slot.dtype, slot.call = address, nbytes, dtype, call
    return slot
