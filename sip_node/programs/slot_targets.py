"""The targets of a message, cut into the parts that each of its slots fills."""

from collections import deque
from collections.abc import Sequence

from msgspec import Struct

from runtime.core.trace import Operand
from sip_node.chip.strided_block import nbytes_of, part_of


class SlotTargets(Struct, frozen=True):
    """The blocks that the bytes of a slot go to, and the number of these bytes."""

    blocks: list[Operand]
    nbytes: int


def cut_in_slots(targets: Sequence[Operand], slot_size: int) -> deque[SlotTargets]:
    """The slots of a message."""
    slots: deque[SlotTargets] = deque()
    blocks, room = list[Operand](), slot_size
    for target in targets:
        start, nbytes = 0, nbytes_of(target)
        while start < nbytes:
            count = min(room, nbytes - start)
            blocks.append(part_of(target, start, count))
            start, room = start + count, room - count
            if not room:
                slots.append(SlotTargets(blocks, slot_size))
                blocks, room = list[Operand](), slot_size
    if blocks:
        slots.append(SlotTargets(blocks, slot_size - room))
    return slots
