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
from typing import TYPE_CHECKING

from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from runtime.core.requests import QueuePair
from sip_node.chip.completion import Completion


class ReferenceSlot(Struct, frozen=True):
    """A full slot, from its metadata: `nbytes` of elements of `dtype` at physical `address`.

    `call` is the collective call that its sender is in, empty for kernels of users.
    """

    address: int
    nbytes: int
    dtype: str
    call: str


class ReferenceQueueState:
    """The state of one queue pair. `table` names its queue table.

    `filled` counts the slots of the own ring that became full, `taken` those that were read and
    whose credit has left. `arrived` are the full slots that no receive has taken.
    """

    def __init__(self, table: str, pair: QueuePair, announce: Callable[[str], None]) -> None:
        self.table, self.pair, self._announce = table, pair, announce
        self.sent = 0
        self.credits = pair.n_slots
        self.filled = 0
        self.arrived: deque[ReferenceSlot] = deque()
        # Full slots by address, behind a slot that is not yet full.
        self._early: dict[int, ReferenceSlot] = {}
        self.taken = 0
        self._sender: Completion[int] | None = None

    @property
    def at_rest(self) -> bool:
        """Whether every credit is back and every slot that arrived was read."""
        return self.credits == self.pair.n_slots and self.filled == self.taken

    def acquire(self) -> Completion[int]:
        """Complete with the address of a free slot of the peer's ring, once there is a credit."""
        # One kernel at a time uses a queue, and it is sequential: at most one sender sleeps.
        done: Completion[int] = Completion()
        if self.credits:
            done.complete(self._reserve_slot())
        else:
            self._sender = done
        return done

    def fill(self, slot: ReferenceSlot) -> None:
        """A slot of the own ring has become full: announce it, once all slots before it are."""
        self._early[slot.address] = slot
        while full := self._early.pop(self._in_own_ring(self.filled), None):
            self.filled += 1
            self.arrived.append(full)
            # After the slot is in the list, since the listener takes it in this call.
            self._announce(self.pair.direction)

    def credit(self) -> None:
        """A slot of the peer's ring is free again: a sender that sleeps for it continues."""
        self.credits += 1
        if self._sender is not None:
            sender, self._sender = self._sender, None
            sender.complete(self._reserve_slot())

    def release(self) -> int:
        """The oldest slot that was taken has been read; returns its address."""
        address = self._in_own_ring(self.taken)
        self.taken += 1
        return address

    def _in_own_ring(self, slot: int) -> int:
        """The address of slot number `slot`."""
        assert self.pair.rx_base is not None
        return self.pair.rx_base + slot % self.pair.n_slots * self.pair.slot_size

    def _reserve_slot(self) -> int:
        assert self.pair.tx_base is not None
        index = self.sent % self.pair.n_slots
        self.credits -= 1
        self.sent += 1
        return self.pair.tx_base + index * self.pair.slot_size


if TYPE_CHECKING or not IS_COMPILED:
    Slot = ReferenceSlot
    QueueState = ReferenceQueueState
else:
    from sip_node.compiled.queue_state import QueueState, Slot  # noqa: F401 - names of this module
