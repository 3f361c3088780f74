"""The slots of the rings that a collective uses, which follow from where its queues stand.

A queue takes the slots of its ring in turn, so launches that begin with the same credits may use
other slots. They differ in their addresses only, which no time depends on: a ring is in TCM.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sip_node.chip.pe.queue_table import QueueState

if TYPE_CHECKING:
    from sip_node.chip.records.kept.kept_records import KeptRecords


class SentSlots:
    """The ring into which a queue sends, which had sent `sent` slots before a launch."""

    def __init__(self, queue: QueueState) -> None:
        self._queue, self._sent, self.pair = queue, queue.sent, queue.pair

    @property
    def turned(self) -> int:
        """The number of slots by which the queue is further on in its ring than it was."""
        return (self._queue.sent - self._sent) % self.pair.n_slots


class RingSlot(NamedTuple):
    """Slot number `place` of a ring."""

    ring: SentSlots
    place: int

    @property
    def distance(self) -> int:
        """The distance to the slot that is used in its place."""
        pair = self.ring.pair
        place = (self.place + self.ring.turned) % pair.n_slots
        return (place - self.place) * pair.slot_size


class RingSlots:
    """The slots of `rings` in the records of a launch on one chip."""

    def __init__(self, rings: Sequence[SentSlots], records: "KeptRecords") -> None:
        # In C only, where launches are repeated.
        from sip_node.chip.launches.record_parts import assigned

        by_base = {each.pair.tx_base: each for each in rings if each.pair.tx_base is not None}
        slots = [
            RingSlot(by_base[base], place)
            for base in sorted(by_base)
            for place in range(by_base[base].pair.n_slots)
        ]
        ranges = [*map(_bytes_of, slots)]
        covered = assigned(records, ranges, "")
        self.spans = any(end > ranges[index][1] for index, *_, end in covered)
        """Whether a block is in several slots, which are apart where the ring has turned."""
        self.parts = [slots[index] for index, *_ in covered]

    def distances(self) -> tuple[int, ...]:
        """The distances of the blocks in each of `parts` from those of the launch, now."""
        return tuple([each.distance for each in self.parts])

    def repeat(self) -> None:
        """The queues count what is sent."""


def _bytes_of(slot: RingSlot) -> tuple[int, int]:
    """The addresses of the first byte of a slot, and of that behind its last one."""
    pair = slot.ring.pair
    assert pair.tx_base is not None, "a queue that sends"
    begin = pair.tx_base + slot.place * pair.slot_size
    return begin, begin + pair.slot_size
