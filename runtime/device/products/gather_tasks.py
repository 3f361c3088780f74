"""The chunks of a gathered operand as the PEs of a cube copy and load them, in offsets.

Offsets count from the operand and from the copies of the cube, so PEs with one number in their
cubes have the same chunks.
"""

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from runtime.device.kernels.gathered_products import (
    COPIED_AHEAD,
    GatheredChunk,
    GatheredPanel,
    PanelBlock,
    SlotCopying,
)
from runtime.device.products.gather_plan import GatherPlan
from runtime.device.products.gather_slots import GatherSlot
from runtime.model.placement import Span

_LEAST_BYTES, _SHARE_BYTES = 4096, 256
"""The bytes of a PE at least, for which memory is dealt over all PEs, and a burst of its slice."""


class CopyLayout(NamedTuple):
    """The copies of a cube: the elements of a PE, those of each matrix of a batch and of a slot,
    and the chunks that are kept.
    """

    share: int
    matrix: int
    slot: int
    ring: int

    @classmethod
    def of(cls, plan: GatherPlan, itemsize: int, matrices: int = 1) -> "CopyLayout":
        """The layout of a plan, with as many elements of each PE that its slice holds them, for the
        most matrices of a cube.
        """
        ring = len(plan.chunks)
        if not plan.is_kept:
            ring = min(ring, COPIED_AHEAD + 1)
        slot = max(slot.elements for chunk in plan.chunks for slot in chunk)
        least, unit = (each // itemsize for each in (_LEAST_BYTES, _SHARE_BYTES))
        matrix = -(-ring * slot // unit) * unit
        return cls(share=max(matrix * matrices, least), matrix=matrix, slot=slot, ring=ring)

    def offset(self, pe: int, chunk: int) -> int:
        """The first element of a slot in the copies of the cube."""
        return pe * self.share + chunk % self.ring * self.slot


@lru_cache(maxsize=256)
def gathered_chunks(
    plan: GatherPlan, layout: CopyLayout, pitch: int, *, depth_in_rows: bool
) -> tuple[tuple[GatheredChunk, ...], ...]:
    """The chunks of each PE of a cube. `pitch` is the distance of the operand's rows in memory,
    which are those of the depth if `depth_in_rows` is set.
    """
    tasks = _Chunks(plan, layout, pitch, depth_in_rows)
    pes = len(plan.chunks[0])
    return tuple(
        tuple(tasks.chunk(pe, number) for number in range(len(plan.chunks))) for pe in range(pes)
    )


def of_batch(chunk: GatheredChunk, count: int, distance: int, layout: CopyLayout) -> GatheredChunk:
    """A chunk of `count` matrices, which are `distance` elements apart."""
    copied = tuple(
        SlotCopying(
            source._replace(offset=source.offset + number * distance),
            tuple(target + number * layout.matrix for target in targets),
        )
        for number in range(count)
        for source, targets in chunk.copied
    )
    return chunk._replace(copied=copied)


def operand_block(slot: GatherSlot, pitch: int, *, depth_in_rows: bool) -> PanelBlock:
    """A slot in the memory of the operand."""
    rows, columns = _in_memory(slot.free, slot.depth, depth_in_rows=depth_in_rows)
    start = rows[0] * pitch + columns[0]
    return PanelBlock(start, (rows[1] - rows[0], columns[1] - columns[0]), pitch)


def _in_memory(free: Span, depth: Span, *, depth_in_rows: bool) -> tuple[Span, Span]:
    return (depth, free) if depth_in_rows else (free, depth)


class _Chunks(NamedTuple):
    plan: GatherPlan
    layout: CopyLayout
    pitch: int
    depth_in_rows: bool

    def chunk(self, pe: int, number: int) -> GatheredChunk:
        """The chunk with a number, for a PE of a cube."""
        plan, slots = self.plan, self.plan.chunks[number]
        copied = ()
        if slots[pe].elements and not plan.is_relayed:
            block = operand_block(slots[pe], self.pitch, depth_in_rows=self.depth_in_rows)
            copied = (SlotCopying(block, (self.layout.offset(pe, number),)),)
        parts = len(plan.parts)
        blocks = [
            self._loaded(self.layout.offset(other, number), slot, plan.parts[pe % parts])
            for other, slot in enumerate(slots)
            if slot.elements and (plan.by_depth or other % parts == pe % parts)
        ]
        if not blocks:
            return GatheredChunk(copied, None)
        span = slots[0].depth[0], max(slot.depth[1] for slot in slots)
        # Slots along the depth of a single row are pieces of it.
        width = blocks[0].shape[1] if self.depth_in_rows else span[1] - span[0]
        return GatheredChunk(copied, GatheredPanel(tuple(blocks), width, self._steps(span)))

    def _loaded(self, start: int, slot: GatherSlot, part: Span) -> PanelBlock:
        """The part of a copied slot that a PE loads."""
        free = max(part[0], slot.free[0]) - slot.free[0], min(part[1], slot.free[1]) - slot.free[0]
        length = slot.free[1] - slot.free[0], slot.depth[1] - slot.depth[0]
        rows, columns = _in_memory(free, (0, length[1]), depth_in_rows=self.depth_in_rows)
        pitch = length[0] if self.depth_in_rows else length[1]
        shape = rows[1] - rows[0], columns[1] - columns[0]
        return PanelBlock(start + rows[0] * pitch + columns[0], shape, pitch)

    def _steps(self, span: Span) -> tuple[int, ...]:
        """The lengths into which the own panels cut a range of the depth."""
        (start, stop), step = span, self.plan.step
        bounds = [start, *range((start // step + 1) * step, stop, step), stop]
        return tuple(end - begin for begin, end in pairwise(bounds))


def depth_of(plan: GatherPlan) -> int:
    """The depth of the product."""
    return max(slot.depth[1] for slot in plan.chunks[-1])
