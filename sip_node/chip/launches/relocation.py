"""The blocks of memory of a launch that is repeated: where they are, with other tensors.

A block belongs to a tensor, and a tensor to the pointers among the arguments that point into it. If
all of these have moved by one distance, the block has moved by that distance in virtual memory; in
physical memory it has to be where it was in one piece, of the same memory.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from runtime.core.requests import Extent
from runtime.core.trace import Operand
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.mapping.strided_block import end_of
from sip_node.chip.pe.mmu import PeMmu


class BlockUse(NamedTuple):
    """A block of an operation: record `number`, and its `place` among the inputs, or -1 for its
    result.
    """

    number: int
    place: int
    block: Operand


class TensorPart:
    """The blocks of a PE in one extent of a tensor: virtual bytes from `begin` to before `end`.

    `tensor` is the number of the tensor, `bases` are the pointers of the PE that point into it,
    `node` is the memory.
    """

    def __init__(
        self,
        mmu: PeMmu,
        pe: int,
        tensor: int,
        bases: Sequence[int],
        extent: Extent,
        node: int,
    ) -> None:
        self.mmu, self.pe, self.tensor, self.bases = mmu, pe, tensor, bases
        self.extent, self.node = extent, node
        self.begin, self.end = extent.end, extent.virtual
        self.physical = 0
        self.uses: list[BlockUse] = []

    def add(self, use: BlockUse) -> None:
        """Add a block."""
        moved = self.extent.virtual - self.extent.physical
        self.begin = min(self.begin, use.block.address + moved)
        self.end = max(self.end, end_of(use.block) + moved)
        self.physical = self.begin - moved
        self.uses.append(use)


class Relocation:
    """The blocks of a launch whose pointers had `addresses`, by PE; `mmus` are those of its PEs.

    Raises `NotRepeated` for a block that is in no tensor of the arguments.
    """

    def __init__(
        self,
        addresses: Sequence[Sequence[int]],
        mmus: Sequence[PeMmu],
        uses: Sequence[Sequence[BlockUse]],
        locate: Callable[[int], tuple[int, int]],
    ) -> None:
        self._addresses, self._mmus, self._locate = addresses, mmus, locate
        self._tensors: dict[str, int] = {}
        self.parts: list[TensorPart] = []
        for pe, (mmu, of_pe) in enumerate(zip(mmus, uses, strict=True)):
            if of_pe:
                self._add(pe, mmu, of_pe)
        # The virtual range of each tensor that is used.
        self._begins = [min(p.begin for p in self._of(n)) for n in range(len(self._tensors))]
        self._ends = [max(p.end for p in self._of(n)) for n in range(len(self._tensors))]

    def _of(self, tensor: int) -> list[TensorPart]:
        return [part for part in self.parts if part.tensor == tensor]

    def _add(self, pe: int, mmu: PeMmu, uses: Sequence[BlockUse]) -> None:
        extents = dict[int, Extent]()
        bases = dict[str, list[int]]()
        for number, address in enumerate(self._addresses[pe]):
            run = mmu.run_below(address)
            pointed = None if run is None else run.at(address)
            if run is None or pointed is None:
                continue
            of_tensor = bases.setdefault(pointed.tensor, [])
            if not of_tensor:
                extents.update(
                    (each.physical, each) for each in run.extents if each.tensor == pointed.tensor
                )
            of_tensor.append(number)
        starts, known = sorted(extents), dict[int, TensorPart]()
        for use in uses:
            place = bisect_right(starts, use.block.address) - 1
            extent = extents[starts[place]] if place >= 0 else None
            if extent is None or end_of(use.block) > extent.physical + extent.nbytes:
                raise NotRepeated("a block of memory in no tensor of the arguments")
            part = known.get(extent.physical)
            if part is None:
                tensor = self._tensors.setdefault(extent.tensor, len(self._tensors))
                node = self._locate(extent.physical)[1]
                part = known[extent.physical] = TensorPart(
                    mmu, pe, tensor, bases[extent.tensor], extent, node
                )
                self.parts.append(part)
            part.add(use)

    @property
    def mapped(self) -> int:
        """The mappings in the page tables of its PEs so far, on which `moved` depends."""
        return sum([each.mapped for each in self._mmus])

    def moved(self, addresses: Sequence[Sequence[int]]) -> tuple[int, ...] | None:
        """The distances by which the parts have moved in their memories, with pointers to
        `addresses`; None where a block is in another memory, or tensors overlap.
        """
        shifts: list[int | None] = [None] * len(self._tensors)
        distances = list[int]()
        for part in self.parts:
            before, now = self._addresses[part.pe], addresses[part.pe]
            shift = now[part.bases[0]] - before[part.bases[0]]
            if any(now[base] - before[base] != shift for base in part.bases):
                return None
            known = shifts[part.tensor]
            if known is None:
                shifts[part.tensor] = shift
            elif known != shift:
                return None
            pieces = part.mmu.translate(part.begin + shift, part.end - part.begin)
            if pieces is None or len(pieces) != 1:
                return None
            distance = pieces[0][0] - part.physical
            if distance and self._locate(pieces[0][0])[1] != part.node:
                return None
            distances.append(distance)
        return tuple(distances) if self._are_apart(shifts) else None

    def _are_apart(self, shifts: Sequence[int | None]) -> bool:
        """Whether tensors that were apart are apart still."""
        ranges = sorted(
            (begin + (shift or 0), end + (shift or 0))
            for begin, end, shift in zip(self._begins, self._ends, shifts, strict=True)
        )
        return all(one[1] <= other[0] for one, other in pairwise(ranges))

    def by_memory(self, distances: Sequence[int]) -> dict[int, dict[int, int]]:
        """The distances by memory, and by the address of the extent that the blocks are in."""
        moved = dict[int, dict[int, int]]()
        for part, distance in zip(self.parts, distances, strict=True):
            moved.setdefault(part.node, {})[part.extent.physical] = distance
        return moved
