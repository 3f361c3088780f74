"""One queue pair of a PE at work: counters, credits, and the slots that have arrived.

A sender writes into the receive ring of its peer and counts what it sent; credits bound that, so
that a slot is never written before it was read:

    this PE                                 peer
    sent ----- data + metadata ----->       ring:  | read | full | full | free |
    credits <---- one per slot read --

Credits start at the number of slots. Slots are counted from 0 without end; slot n lies in the ring
at index n modulo its length. Slots are read in this order, not in the order in which they become
full: the packets of two slots take turns at memories, so a short slot can be full before a long one
that was sent before it.
"""

from collections import deque
from collections.abc import Callable

from runtime.core.requests import QueuePair
from sip_node.chip.completion import AnyCompletion


class Slot:
    """A full slot, from its metadata: `nbytes` of elements of `dtype` at physical `address`.

    `call` is the collective call that its sender is in, empty for kernels of users.
    """

    def __init__(self, address: int, nbytes: int, dtype: str, call: str) -> None:
        self.address, self.nbytes, self.dtype, self.call = address, nbytes, dtype, call


def new_slot(address: int, nbytes: int, dtype: str, call: str) -> Slot:
    """A slot; in C, without the call of a constructor."""
    slot = Slot.__new__(Slot)
    slot.address, slot.nbytes, slot.dtype, slot.call = address, nbytes, dtype, call
    return slot


class QueueState:
    """The state of one queue pair. `table` names its queue table.

    `filled` counts the slots of the own ring that became full, `taken` those that were read and
    whose credit has left. `arrived` are the full slots that no receive has taken. A queue without a
    ring at one end has the base -1 there. `peer_sip` and `peer_node` are the PE of the peer on the
    fabric, -1 before the first message to it.
    """

    def __init__(self, table: str, pair: QueuePair, announce: Callable[[str], None]) -> None:
        self.table, self._announce = table, announce
        self.pair = pair
        self.sent = self.filled = self.taken = 0
        self.credits = self.n_slots
        self.arrived: deque[Slot] = deque()
        # Full slots by address, behind a slot that is not yet full.
        self._early: dict[int, Slot] = {}
        self._sender: AnyCompletion | None = None
        self.peer_sip = self.peer_node = -1

    @property
    def pair(self) -> QueuePair:
        """The queue pair."""
        return self.queue_pair

    @pair.setter
    def pair(self, pair: QueuePair) -> None:
        # What is read for every slot is beside it, in C as numbers.
        self.queue_pair, self.direction = pair, pair.direction
        self.n_slots, self.slot_size = pair.n_slots, pair.slot_size
        self.rx_base = -1 if pair.rx_base is None else pair.rx_base
        self.tx_base = -1 if pair.tx_base is None else pair.tx_base

    @property
    def at_rest(self) -> bool:
        """Whether every credit is back and every slot that arrived was read."""
        return self.credits == self.n_slots and self.filled == self.taken

    def reserve(self) -> int:
        """The address of a free slot of the peer's ring, reserved now; -2 without a credit."""
        index = self.sent % self.n_slots
        if self.credits <= 0:
            return -2
        assert self.tx_base >= 0, "a queue that sends has a ring at the peer"
        self.credits -= 1
        self.sent += 1
        return self.tx_base + index * self.slot_size

    def acquire(self) -> AnyCompletion:
        """Complete with the address of a free slot, reserved once there is a credit."""
        # One kernel at a time uses a queue, and it is sequential: at most one sender sleeps.
        done = AnyCompletion()
        address = self.reserve()
        if address >= 0:
            done.complete(address)
        else:
            self._sender = done
        return done

    def fill(self, slot: Slot) -> None:
        """A slot of the own ring has become full: announce it, once all slots before it are."""
        address = slot.address
        if address != self._in_own_ring(self.filled):
            self._early[address] = slot
        else:
            self._append(slot)
            # In the order of the ring: without an earlier slot still to come there is no lookup.
            while self._early:
                behind = self._early.pop(self._in_own_ring(self.filled), None)
                if behind is None:
                    break
                self._append(behind)

    def credit(self) -> None:
        """A slot of the peer's ring is free again: a sender that sleeps for it continues."""
        sender = self._sender
        self.credits += 1
        if sender is not None:
            self._sender = None
            sender.complete(self.reserve())

    def release(self) -> int:
        """The oldest slot that was taken has been read; returns its address."""
        address = self._in_own_ring(self.taken)
        self.taken += 1
        return address

    def _append(self, slot: Slot) -> None:
        self.filled += 1
        self.arrived.append(slot)
        # After the slot is in the list, since the listener takes it in this call.
        self._announce(self.direction)

    def _in_own_ring(self, number: int) -> int:
        """The address of slot number `number`."""
        assert self.rx_base >= 0, "a queue that receives has a ring"
        return self.rx_base + number % self.n_slots * self.slot_size
