"""The slots of receive rings that a kernel uses in place, until it releases them.

Credits return in the order of the ring, since the sender counts them: the credit of a slot that was
copied, or released, behind one that is kept waits for that one.

    ring      | kept | copied | released | copied | free ...
    credits     of none of these, until the first one is released; then of all four
"""

from collections import deque
from typing import TYPE_CHECKING

from msgspec import Struct

from runtime.core.compiled.choice import IS_COMPILED
from sip_node.chip.pe.queue_table import QueueTable
from sip_node.chip.pe.tcm import PeTcm

NOT_KEPT = -1


class _KeptMessage(Struct):
    """Slots that follow each other in the ring; `released` when their credits may return."""

    direction: str
    slots: int
    released: bool = False


class ReferenceKeptSlots:
    """The slots that one kernel keeps."""

    def __init__(self, queues: QueueTable, tcm: PeTcm) -> None:
        self._queues = queues
        self._own_tcm = range(tcm.base, tcm.base + tcm.memory.nbytes)
        # By direction, the slots from the oldest one kept on; and by address what a kernel uses.
        self._behind: dict[str, deque[_KeptMessage]] = {}
        self._used: dict[int, _KeptMessage] = {}

    def keep(self, direction: str, nbytes: int) -> int:
        """Keep the next message of a direction, whose first slot has arrived.

        Returns the address of its first byte; `NOT_KEPT` if its ring is not in this TCM, or if it
        wraps round the end of the ring.
        """
        pair, address = self._queues.pair(direction), self._queues.head_address(direction)
        assert pair.rx_base is not None
        end = pair.rx_base + pair.n_slots * pair.slot_size
        if address not in self._own_tcm or address + nbytes > end:
            return NOT_KEPT
        self._used[address] = message = _KeptMessage(direction, -(-nbytes // pair.slot_size))
        self._behind.setdefault(direction, deque()).append(message)
        return address

    def copied(self, direction: str, address: int) -> None:
        """A message is copied to `address` instead: its release returns no credit."""
        self._used[address] = _KeptMessage(direction, 0)

    def slot_copied(self, direction: str) -> None:
        """A slot was copied: its credit returns, once those of all slots before it have."""
        if behind := self._behind.get(direction):
            behind.append(_KeptMessage(direction, 1, released=True))
        else:
            self._queues.release(direction)

    def release(self, address: int) -> bool:
        """The kernel uses the message at `address` no more; whether there is one."""
        message = self._used.pop(address, None)
        if message is None:
            return False
        message.released = True
        behind = self._behind.get(message.direction)
        while behind and behind[0].released:
            for _ in range(behind.popleft().slots):
                self._queues.release(message.direction)
        return True

    def release_all(self) -> None:
        """The kernel has ended."""
        for address in tuple(self._used):
            self.release(address)


if TYPE_CHECKING or not IS_COMPILED:
    KeptSlots = ReferenceKeptSlots
else:
    from sip_node.compiled import kept_slots as compiled

    KeptSlots = compiled.KeptSlots
