"""The slots of the rings that a collective uses, which follow from where its queues stand.

A queue takes the slots of its ring in turn, so launches that begin with the same credits may use
other slots. They differ in their addresses only, which no time depends on: a ring is in TCM.
"""

from bisect import bisect_right
from collections.abc import Sequence

from runtime.core.trace import Operand, OpRecord
from sip_node.chip.launches.relocation import BlockUse
from sip_node.chip.mapping.strided_block import end_of
from sip_node.chip.pe.queue_table import QueueState


class SentSlots:
    """The ring into which a queue sends, which had sent `sent` slots before a launch."""

    def __init__(self, queue: QueueState) -> None:
        self._queue, self._sent, self.pair = queue, queue.sent, queue.pair

    @property
    def turned(self) -> int:
        """The number of slots by which the queue is further on in its ring than it was."""
        return (self._queue.sent - self._sent) % self.pair.n_slots


class RingSlot:
    """A slot of a ring, and the blocks in it."""

    def __init__(self, ring: SentSlots, index: int) -> None:
        self._ring, self._index = ring, index
        self.uses: list[BlockUse] = []

    @property
    def distance(self) -> int:
        """The distance to the slot that is used in its place."""
        ring = self._ring
        place = (self._index + ring.turned) % ring.pair.n_slots
        return (place - self._index) * ring.pair.slot_size


class RingSlots:
    """The slots of `rings` in the records of a launch on one chip."""

    def __init__(self, rings: Sequence[SentSlots], records: Sequence[OpRecord]) -> None:
        by_base = {each.pair.tx_base: each for each in rings if each.pair.tx_base is not None}
        bases = sorted(by_base)
        slots = dict[tuple[int, int], RingSlot]()
        self.spans = False
        """Whether a block is in several slots, which are apart where the ring has turned."""
        for number, record in enumerate(records):
            target = Operand(record.address, record.shape, record.dtype, record.strides)
            for index, block in enumerate((target, *record.inputs), -1):
                if not isinstance(block, Operand):
                    continue
                place = bisect_right(bases, block.address) - 1
                if place < 0:
                    continue
                base, ring = bases[place], by_base[bases[place]]
                slot = (block.address - base) // ring.pair.slot_size
                if slot >= ring.pair.n_slots:
                    continue
                # Records of links and arrivals have an address, and no block.
                end = end_of(block) if block.dtype else block.address
                self.spans |= end > base + (slot + 1) * ring.pair.slot_size
                known = slots.get((base, slot))
                if known is None:
                    known = slots[base, slot] = RingSlot(ring, slot)
                known.uses.append(BlockUse(number, index, block))
        self.parts = tuple(slots.values())

    def distances(self) -> tuple[int, ...]:
        """The distances of the blocks in each of `parts` from those of the launch, now."""
        return tuple([each.distance for each in self.parts])

    def repeat(self) -> None:
        """The queues count what is sent."""
