"""The slots of messages: the parts that each fills, and those that a kernel uses in place.

A kernel keeps slots of a receive ring until it releases them. Credits return in the order of the
ring, since the sender counts them: the credit of a slot that was copied, or released, behind one
that is kept waits for that one.

    ring      | kept | copied | released | copied | free ...
    credits     of none of these, until the first one is released; then of all four
"""

from collections import deque
from collections.abc import Sequence

from runtime.core.trace import Operand
from sip_node.chip.mapping.strided_block import item_bytes, nbytes_of, part_of
from sip_node.chip.pe.queue_table import QueueState, QueueTable
from sip_node.chip.pe.tcm import PeTcm

NOT_KEPT = -1


class SlotTargets:
    """The blocks that the bytes of a slot go to, and the number of these bytes."""

    def __init__(self, blocks: list[Operand], nbytes: int) -> None:
        self.blocks, self.nbytes = blocks, nbytes


def cut_in_slots(targets: Sequence[Operand], slot_size: int) -> deque[SlotTargets]:
    """The slots of a message."""
    slots: deque[SlotTargets] = deque()
    blocks, room = list[Operand](), slot_size
    for target in targets:
        start, nbytes, item = 0, nbytes_of(target), item_bytes(target.dtype)
        while start < nbytes:
            count = min(room, nbytes - start)
            blocks.append(slot_part(target, nbytes, item, start, count))
            start, room = start + count, room - count
            if not room:
                slots.append(SlotTargets(blocks, slot_size))
                blocks, room = [], slot_size
    if blocks:
        slots.append(SlotTargets(blocks, slot_size - room))
    return slots


def slot_part(block: Operand, whole: int, item: int, start: int, nbytes: int) -> Operand:
    """`part_of` a block of `whole` bytes in elements of `item` bytes, which the caller has found
    once for all slots.
    """
    if nbytes == whole:
        return block
    if start % item or nbytes % item:
        return part_of(block, start, nbytes)
    return Operand(block.address + start, (nbytes // item,), block.dtype)


class KeptMessage:
    """Slots that follow each other in the ring of a queue.

    `released` when their credits may return.
    """

    def __init__(self, queue: QueueState, slots: int) -> None:
        self.queue, self.slots, self.released = queue, slots, False


class KeptSlots:
    """The slots that one kernel keeps."""

    def __init__(self, queues: QueueTable, tcm: PeTcm) -> None:
        self._queues = queues
        # The addresses of the own TCM: its first byte, and that behind the last one.
        self._first, self._end = tcm.base, tcm.base + tcm.memory.nbytes
        # By direction, the slots from the oldest one kept on; and by address what a kernel uses.
        self._behind: dict[str, deque[KeptMessage]] = {}
        self._used: dict[int, KeptMessage] = {}

    def keep(self, queue: QueueState, nbytes: int) -> int:
        """Keep the next message of a queue, whose first slot has arrived.

        Returns the address of its first byte; `NOT_KEPT` if its ring is not in this TCM, or if it
        wraps round the end of the ring.
        """
        self._queues.kept += 1
        first = queue.arrived[0]
        address, size = first.address, queue.slot_size
        in_own_tcm = self._first <= address < self._end
        # Engines read operands from their own TCM only, and a value is one range of addresses.
        if not in_own_tcm or address + nbytes > queue.rx_base + queue.n_slots * size:
            return -1
        self._used[address] = message = KeptMessage(queue, (nbytes + size - 1) // size)
        self._behind.setdefault(queue.direction, deque()).append(message)
        return address

    def copied(self, queue: QueueState, address: int) -> None:
        """A message is copied to `address` instead: its release returns no credit."""
        self._used[address] = KeptMessage(queue, 0)

    def slot_copied(self, queue: QueueState) -> None:
        """A slot was copied: its credit returns, once those of all slots before it have."""
        behind = self._behind.get(queue.direction)
        if behind:
            message = KeptMessage(queue, 1)
            message.released = True
            behind.append(message)
        else:
            self._queues.return_credit(queue)

    def release(self, address: int) -> bool:
        """The kernel uses the message at `address` no more; whether there is one."""
        message = self._used.pop(address, None)
        if message is None:
            return False
        message.released = True
        behind = self._behind.get(message.queue.direction)
        while behind:
            # In the order of the ring: a credit names no slot, so the sender takes it for the
            # oldest one.
            oldest = behind[0]
            if not oldest.released:
                break
            behind.popleft()
            for _ in range(oldest.slots):
                self._queues.return_credit(oldest.queue)
        return True

    def release_all(self) -> None:
        """The kernel has ended."""
        for address in tuple(self._used):
            self.release(address)
