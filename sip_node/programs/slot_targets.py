"""The targets of a message, cut into the parts that each of its slots fills."""

from collections import deque
from collections.abc import Sequence

from runtime.core.trace import Operand
from sip_node.chip.strided_block import item_bytes, nbytes_of, part_of


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
