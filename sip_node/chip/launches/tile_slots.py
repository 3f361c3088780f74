"""The registers and tile buffers of a launch that is repeated: which of them its products use.

Products take the slots of a PE in turn, so the slots of a launch follow from whose turn it is when
the launch begins. They differ in their addresses only, which no time depends on.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sip_node.chip.pe.pe import Pe

if TYPE_CHECKING:
    from sip_node.chip.records.kept.kept_records import KeptRecords

Turn = tuple[int, ...]
"""The slots of a list in the order in which they are taken."""


class _SlotList(NamedTuple):
    """Slots of a PE that are taken in turn, and the addresses that each has."""

    slots: Any
    addresses: tuple[Callable[[int], int], ...]


class UsedSlot(NamedTuple):
    """A slot that a launch uses at one of its addresses: number `place` in the turn of its list."""

    of: int
    place: int
    address: Callable[[int], int]
    before: int


def slot_lists(pe: Pe) -> list[_SlotList]:
    """All slots of a PE."""
    registers, buffers = pe.registers, pe.buffers
    return [
        _SlotList(registers.sets, (registers.a, registers.b)),
        _SlotList(registers.accumulators, (registers.accumulator,)),
        _SlotList(registers.biases, (registers.bias,)),
        _SlotList(buffers.operands, (buffers.a, buffers.b)),
        _SlotList(buffers.results, (buffers.result,)),
    ]


def turns_of(pes: Sequence[Pe]) -> list[list[Turn]]:
    """The turns of all slots of some PEs."""
    return [[each.slots.turn for each in slot_lists(pe)] for pe in pes]


class TileSlots:
    """The slots of `pes` in a launch with `records`, whose turns were those of `before` at its
    begin, and of `after` at its end.
    """

    def __init__(
        self,
        pes: Sequence[Pe],
        before: Sequence[Sequence[Turn]],
        after: Sequence[Sequence[Turn]],
        records: "KeptRecords",
    ) -> None:
        # In C only, where launches are repeated.
        from sip_node.chip.launches.record_parts import assigned, pes_of

        used = pes_of(records, "pe_gemm")
        self._lists = list[_SlotList]()
        # At the end, the places that the slots had in the turn at the begin.
        self._ends = list[list[int]]()
        known = dict[int, UsedSlot]()
        regions = list[tuple[int, int]]()
        for pe, old, new in zip(pes, before, after, strict=True):
            if (pe.coordinates.cube, pe.coordinates.pe) not in used:
                continue
            registers, buffers = pe.registers, pe.buffers
            first, begin = registers.a(0), buffers.a(0)
            regions += (first, first + registers.nbytes), (begin, begin + buffers.nbytes)
            for each, turn, later in zip(slot_lists(pe), old, new, strict=True):
                for address in each.addresses:
                    for place, slot in enumerate(turn):
                        known[address(slot)] = UsedSlot(len(self._lists), place, address, slot)
                self._lists.append(each)
                self._ends.append([turn.index(slot) for slot in later])
        # A slot ends where another one begins, or at the end of its area.
        ends = sorted([*known, *[end for _, end in regions]])
        ranges = [(start, ends[bisect_right(ends, start)]) for start in sorted(known)]
        covered = assigned(records, ranges, "")
        self.parts: Sequence[UsedSlot] = [known[ranges[index][0]] for index, *_ in covered]

    def distances(self) -> tuple[int, ...]:
        """The distances of the blocks in each of `parts` from those of the launch, now."""
        turns = [each.slots.turn for each in self._lists]
        return tuple(
            slot.address(turns[slot.of][slot.place]) - slot.address(slot.before)
            for slot in self.parts
        )

    def repeat(self) -> None:
        """Let the slots have the turns that they have behind a launch."""
        for each, places in zip(self._lists, self._ends, strict=True):
            turn = each.slots.turn
            each.slots.turn = tuple(turn[place] for place in places)
