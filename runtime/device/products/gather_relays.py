"""Copies of a gathered operand by relays: each part of it passes a link between cubes a few times,
where direct reads of all cubes pass the links around its home as often as there are cubes behind.

The *home* of a part is the cube that holds it. The cubes in the home's row of the mesh load it, and
each of them stores it to all cubes of its column; every other home has columns for rows and rows
for columns, so that both axes carry both, and so has every other part of a home where homes are few
of the cubes. A barrier of the launch later all cubes have it.

    home --load--> a PE of each cube in its row --store--> the cubes of the column
"""

from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

from runtime.device.kernels.gathered_products import PanelBlock, SlotCopying
from runtime.device.products.cube_mesh import CubeMesh, relay_targets
from runtime.device.products.gather_plan import GatherOperand, GatherPlan
from runtime.device.products.gather_tasks import CopyLayout, operand_block
from runtime.device.regions.regions import Pe


@lru_cache(maxsize=256)
def relayed_copies(
    plan: GatherPlan, layout: CopyLayout, mesh: CubeMesh, operand: GatherOperand
) -> dict[Pe, tuple[tuple[SlotCopying, ...], ...]]:
    """Copies by each PE of each chunk, with targets that count from the copies of its cube."""
    relays = _Relays(layout, mesh, operand)
    cubes = mesh.width * mesh.height
    copied: dict[Pe, list[list[SlotCopying]]] = {
        (cube, pe): [[] for _ in plan.chunks] for cube in range(cubes) for pe in range(mesh.pes)
    }
    for number, slots in enumerate(plan.chunks):
        blocks = [
            (pe, operand_block(slot, operand.pitch, depth_in_rows=not operand.in_rows))
            for pe, slot in enumerate(slots)
            if slot.elements
        ]
        parts = [(pe, block, *part) for pe, block in blocks for part in relays.parts(block)]
        # Many homes balance the axes, which parts of unequal lengths would not: 256 rows of 768
        # elements take 7 % less time.
        takes_turns = 2 * len({home for _, _, home, _ in parts}) < cubes
        turns = [0] * cubes
        for pe, block, home, part in parts:
            target = layout.offset(pe, number)
            target += (part.offset - block.offset) // block.pitch * block.shape[1]
            for cube, others in relay_targets(mesh, home, turns[home]).items():
                targets = tuple(target + relays.distance(cube, other) for other in others)
                copied[cube, pe][number].append(SlotCopying(part, targets))
            turns[home] += takes_turns
    return {pe: tuple(map(tuple, chunks)) for pe, chunks in copied.items()}


class _Relays(NamedTuple):
    layout: CopyLayout
    mesh: CubeMesh
    operand: GatherOperand

    def parts(self, block: PanelBlock) -> list[tuple[int, PanelBlock]]:
        """The rows of a block with their homes: rows that follow each other are one part."""
        (rows, columns), pitch = block.shape, block.pitch
        homes = [self._home(block.offset + row * pitch + columns // 2) for row in range(rows)]
        starts = [row for row in range(rows) if not row or homes[row] != homes[row - 1]]
        return [
            (homes[row], PanelBlock(block.offset + row * pitch, (stop - row, columns), pitch))
            for row, stop in zip(starts, [*starts[1:], rows], strict=True)
        ]

    def distance(self, cube: int, other: int) -> int:
        """The distance between the copies of two cubes in elements."""
        return (other - cube) * self.mesh.pes * self.layout.share

    def _home(self, element: int) -> int:
        """The cube that holds an element."""
        ends, holders = self.operand.ends, self.operand.holders
        return holders[min(bisect_right(ends, element), len(holders) - 1)] // self.mesh.pes
