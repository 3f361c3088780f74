"""The blocks of memory of a launch that is repeated: where they are, with other tensors.

A block belongs to a tensor, and a tensor to the pointers among the arguments that point into it. If
all of these have moved by one distance, the block has moved by that distance in virtual memory; in
physical memory it has to be where it was in one piece, of the same memory.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from runtime.core.requests import Extent
from sip_node.chip.launch_keys import NotRepeated
from sip_node.chip.pe.mmu import PeMmu

if TYPE_CHECKING:
    from sip_node.chip.records.kept.kept_records import KeptRecords

DMA = "pe_dma"
"""The engine of the operations on tensors."""


class ExternalMemories(Protocol):
    """The memories of blocks."""

    def is_external(self, address: int) -> bool:
        """Whether an address is in HBM or SRAM."""
        ...

    def locate(self, address: int) -> tuple[int, int]:
        """The SIP of an address, and the node of its memory there."""
        ...


class TensorPart(NamedTuple):
    """The blocks of a PE in one extent of a tensor: virtual bytes from `begin` to before `end`,
    from address `physical` on.

    `tensor` is the number of the tensor, `bases` are the pointers of the PE that point into it,
    `node` is the memory.
    """

    mmu: PeMmu
    pe: int
    tensor: int
    bases: Sequence[int]
    extent: Extent
    node: int
    physical: int
    begin: int
    end: int


class Relocation:
    """The blocks of tensors in the `records` of a launch on `pes`, as (cube, PE), whose pointers
    had `addresses`, by PE; `mmus` are those of its PEs.

    Raises `NotRepeated` for a block that is in no tensor of the arguments.
    """

    def __init__(
        self,
        addresses: Sequence[Sequence[int]],
        pes: Sequence[tuple[int, int]],
        mmus: Sequence[PeMmu],
        records: "KeptRecords",
        memories: ExternalMemories,
    ) -> None:
        # In C only, where launches are repeated.
        from sip_node.chip.launches.record_parts import addresses_before, assigned

        self._addresses, self._mmus, self._memories = addresses, mmus, memories
        self._tensors: dict[str, int] = {}
        # By PE: the pointers into each tensor, by their places among its addresses.
        self._bases = [dict[str, list[int]]() for _ in mmus]
        extents = self._pointed()
        ranges = [(each.physical, each.physical + each.nbytes) for each in extents]
        first, places = records.parts, {each: pe for pe, each in enumerate(pes)}
        self.parts = list[TensorPart]()
        for index, cube, pe, begin, end in assigned(records, ranges, DMA):
            if end > ranges[index][1]:
                raise NotRepeated("a block of memory in no tensor of the arguments")
            self.parts.append(self._part(places[cube, pe], extents[index], begin, end))
        if any(map(memories.is_external, addresses_before(records, first, DMA))):
            raise NotRepeated("a block of memory in no tensor of the arguments")
        # The virtual range of each tensor that is used.
        self._begins = [min(p.begin for p in self._of(n)) for n in range(len(self._tensors))]
        self._ends = [max(p.end for p in self._of(n)) for n in range(len(self._tensors))]

    def _of(self, tensor: int) -> list[TensorPart]:
        return [part for part in self.parts if part.tensor == tensor]

    def _pointed(self) -> list[Extent]:
        """The extents in HBM and SRAM of the tensors that pointers point into, which are rising."""
        extents, known = dict[int, Extent](), set[tuple[int, str]]()
        for of_pe, mmu, bases in zip(self._addresses, self._mmus, self._bases, strict=True):
            for number, address in enumerate(of_pe):
                run = mmu.run_below(address)
                pointed = None if run is None else run.at(address)
                if run is None or pointed is None:
                    continue
                bases.setdefault(pointed.tensor, []).append(number)
                # PEs share runs.
                if (id(run), pointed.tensor) in known:
                    continue
                known.add((id(run), pointed.tensor))
                of_tensor = [each for each in run.extents if each.tensor == pointed.tensor]
                for each in of_tensor:
                    if extents.setdefault(each.physical, each) != each:
                        raise NotRepeated("memory of two tensors")
        is_external = self._memories.is_external
        rising = [extents[physical] for physical in sorted(extents) if is_external(physical)]
        if any(one.physical + one.nbytes > other.physical for one, other in pairwise(rising)):
            raise NotRepeated("memory of two tensors")
        return rising

    def _part(self, pe: int, extent: Extent, begin: int, end: int) -> TensorPart:
        """The part with the blocks of a PE in an extent, at physical bytes from `begin` to before
        `end`.
        """
        bases = self._bases[pe].get(extent.tensor)
        if bases is None:
            raise NotRepeated("a block of memory in no tensor of the arguments")
        moved = extent.virtual - extent.physical
        return TensorPart(
            mmu=self._mmus[pe],
            pe=pe,
            tensor=self._tensors.setdefault(extent.tensor, len(self._tensors)),
            bases=bases,
            extent=extent,
            node=self._memories.locate(extent.physical)[1],
            physical=begin,
            begin=begin + moved,
            end=end + moved,
        )

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
            if distance and self._memories.locate(pieces[0][0])[1] != part.node:
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
