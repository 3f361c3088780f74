"""The plan of a large product: the block of each cube, and the copies of its panels.

The result is cut into a grid of blocks, one for each cube, and a block into a grid of parts, one
for each PE. A panel of an operand is used by a line of cubes of the grid. Its chunks are cut into
slots, one for each PE of a cube. From the cube that holds most of a slot, the *home*, the cubes of
the line copy it in stages, as a tree over the mesh: those near it from the home, those behind from
a cube that has copied it in the stage before. A link between two cubes carries a slot about once.
"""

from bisect import bisect_right
from functools import lru_cache
from itertools import accumulate, product
from typing import NamedTuple

from runtime.device.kernels.cube_products import (
    ChunkLoads,
    CubeTask,
    Descriptor,
    OperandLoads,
    OperandTask,
    SlotCopy,
    Steps,
)
from runtime.device.products.cube_mesh import CubeMesh, copy_tree
from runtime.device.regions.regions import Pe


class CubeOperandShape(NamedTuple):
    """An operand: its free axis in elements, the pitch of its memory, whether the free axis is that
    of the rows in memory, and the end in memory of each share with its cube, in elements.
    """

    length: int
    pitch: int
    in_rows: bool
    ends: tuple[int, ...]
    cubes: tuple[int, ...]

    def home(self, element: int) -> int:
        """The cube that holds an element."""
        return self.cubes[min(bisect_right(self.ends, element), len(self.cubes) - 1)]


class CubeGrid(NamedTuple):
    """The blocks of the result, the parts of a block, the lengths of the chunks of the depth."""

    rows: int
    columns: int
    part_rows: int
    part_columns: int
    chunks: tuple[int, ...]


class OperandPlan(NamedTuple):
    """The copies and loads of an operand, by PE, the elements of its copies in all cubes, and the
    stages in which they are made.
    """

    loads: OperandLoads
    steps: dict[Pe, tuple[tuple[SlotCopy, ...], ...]]
    offsets: dict[Pe, int]
    elements: int
    stages: int


class CubeProductPlan(NamedTuple):
    """The plan of a product: of both operands and of every PE."""

    steps: Steps
    a: OperandPlan
    b: OperandPlan
    tasks: dict[Pe, CubeTask]


@lru_cache(maxsize=256)
def cube_plan(
    mesh: CubeMesh, a: CubeOperandShape, b: CubeOperandShape, grid: CubeGrid
) -> CubeProductPlan:
    """The plan of `a @ b` on a grid, whose blocks, parts and slots have no remainder."""
    cubes = [divmod(cube, grid.columns) for cube in range(mesh.width * mesh.height)]
    parts = [divmod(pe, grid.part_columns) for pe in range(mesh.pes)]
    # Slots of operands with the depth in memory rows are parts of the depth.
    is_dealt = not (a.in_rows and b.in_rows)
    of_a, of_b = (
        _OperandPlanner(
            mesh=mesh,
            shape=shape,
            chunks=grid.chunks,
            is_dealt=is_dealt,
            panels=tuple(each[axis] for each in cubes),
            parts=tuple(each[axis] for each in parts),
        ).plan(used_in_rows=not axis)
        for axis, shape in enumerate((a, b))
    )
    shape = (
        a.length // grid.rows // grid.part_rows,
        b.length // grid.columns // grid.part_columns,
    )
    tasks = {
        (cube, pe): CubeTask(
            a=OperandTask(of_a.steps.get((cube, pe), ()), of_a.offsets[cube, pe], part_row),
            b=OperandTask(of_b.steps.get((cube, pe), ()), of_b.offsets[cube, pe], part_column),
            shape=shape,
            row=(row * grid.part_rows + part_row) * shape[0],
            column=(column * grid.part_columns + part_column) * shape[1],
        )
        for cube, (row, column) in enumerate(cubes)
        for pe, (part_row, part_column) in enumerate(parts)
    }
    stages = max(of_a.stages, of_b.stages)
    # A slot is loaded in one step, stored in the next, and loaded by others in that after it.
    loaded = {
        step
        for operand in (of_a, of_b)
        for each in operand.steps.values()
        for step, copies in enumerate(each)
        if copies
    }
    count = len(grid.chunks) + 2 * stages - 1 if stages else 0
    steps = Steps(tuple(step - 1 in loaded for step in range(count)), 2 * stages)
    return CubeProductPlan(steps, of_a, of_b, tasks)


class _OperandPlanner(NamedTuple):
    """`is_dealt`: a chunk has a part of each of as many parts of the depth as a cube has PEs.
    `panels` is the panel of each cube, `parts` the part of it of each PE.
    """

    mesh: CubeMesh
    shape: CubeOperandShape
    chunks: tuple[int, ...]
    is_dealt: bool
    panels: tuple[int, ...]
    parts: tuple[int, ...]

    @property
    def panel(self) -> int:
        return self.shape.length // (max(self.panels) + 1)

    @property
    def depth(self) -> int:
        return sum(self.chunks)

    def plan(self, *, used_in_rows: bool) -> OperandPlan:
        if self._is_local():
            slots, panels, offsets = (), self._own_panels(), self._own_offsets()
            steps, stages = {}, 0
        else:
            slots, panels, offsets = self._slots(), self._copied_panels(), self._copied_offsets()
            steps, stages = self._steps()
        loads = OperandLoads(
            panels=panels,
            is_turned=self.shape.in_rows != used_in_rows,
            slots=slots,
            parts=1 if self.shape.in_rows else max(self.parts) + 1,
        )
        elements = len(self.panels) * self.panel * self.depth if stages else 0
        return OperandPlan(loads, steps, offsets, elements, stages)

    @property
    def deal(self) -> int:
        """The parts of the depth of which a chunk has a part: one on every cube, if that can be."""
        cubes = len(self.panels)
        return cubes if cubes % self.mesh.pes == 0 else self.mesh.pes

    def _rows_of_depth(self, length: int) -> Descriptor:
        """A slot of a chunk in the operand, with the depth in rows."""
        pes, pitch = self.mesh.pes, self.shape.pitch
        return (self.deal // pes, length // self.deal, self.panel), (
            self.depth // self.deal * pitch,
            pitch,
            1,
        )

    def _starts(self) -> list[tuple[int, int]]:
        """The start and the length of each chunk."""
        return list(zip(accumulate(self.chunks, initial=0), self.chunks, strict=False))

    def _own_panels(self) -> tuple[ChunkLoads, ...]:
        part = self.panel // (max(self.parts) + 1)
        return tuple(
            ChunkLoads(
                self._source_block(part, length),
                start // self.deal if self.is_dealt else start,
                0,
                (part, length),
            )
            for start, length in self._starts()
        )

    def _own_offsets(self) -> dict[Pe, int]:
        part = self.panel // (max(self.parts) + 1)
        return {
            (cube, pe): (panel * self.panel + number * part) * self.shape.pitch
            for cube, panel in enumerate(self.panels)
            for pe, number in enumerate(self.parts)
        }

    def _slots(self) -> tuple[Descriptor, ...]:
        pes = self.mesh.pes
        return tuple(
            self._source_block(self.panel // pes, length)
            if self.shape.in_rows
            else self._rows_of_depth(length)
            for length in self.chunks
        )

    def _copied_panels(self) -> tuple[ChunkLoads, ...]:
        pes, parts = self.mesh.pes, max(self.parts) + 1
        pitch, part = self.panel * self.depth // pes, self.panel // parts
        loads = list[ChunkLoads]()
        for start, length in self._starts():
            elements, behind = self.panel * length // pes, self.panel * start // pes
            if self.shape.in_rows:
                block, by_part = ((pes // parts, elements), (pitch, 1)), 0
            else:
                by_part = elements // parts
                block = (pes, by_part), (pitch, 1)
            shape = (part, length) if self.shape.in_rows else (length, part)
            loads.append(ChunkLoads(block, behind, by_part, shape))
        return tuple(loads)

    def _copied_offsets(self) -> dict[Pe, int]:
        """Offsets in chunk 0: some slots if the free axis is in rows, else a part of each."""
        pes, parts = self.mesh.pes, max(self.parts) + 1
        pitch = self.panel * self.depth // pes
        return {
            (cube, pe): (cube * pes + (number * pes // parts if self.shape.in_rows else 0)) * pitch
            for cube in range(len(self.panels))
            for pe, number in enumerate(self.parts)
        }

    def _source_block(self, length: int, chunk: int) -> Descriptor:
        """`length` rows of a chunk in the operand, with the free axis in rows."""
        if self.is_dealt:
            return (length, self.deal, chunk // self.deal), (
                self.shape.pitch,
                self.depth // self.deal,
                1,
            )
        return (length, chunk), (self.shape.pitch, 1)

    def _slot(self, panel: int, slot: int, start: int) -> int:
        """The first element of a slot of the chunk that begins at `start`."""
        pes = self.mesh.pes
        if self.shape.in_rows:
            row = panel * self.panel + slot * (self.panel // pes)
            return row * self.shape.pitch + (start // self.deal if self.is_dealt else start)
        row = self.depth // pes * slot + start // self.deal
        return row * self.shape.pitch + panel * self.panel

    def _home(self, panel: int, slot: int, start: int, length: int) -> int:
        """The cube that holds the middle of a slot."""
        rows = (self.panel if self.shape.in_rows else length) // self.mesh.pes
        return self.shape.home(self._slot(panel, slot, start) + rows // 2 * self.shape.pitch)

    def _is_local(self) -> bool:
        """Whether every cube holds its own panel."""
        return self.shape.in_rows and all(
            self._home(panel, slot, 0, 1) == cube
            for cube, panel in enumerate(self.panels)
            for slot in range(self.mesh.pes)
        )

    def _steps(self) -> tuple[dict[Pe, tuple[tuple[SlotCopy, ...], ...]], int]:
        """The copies of each PE by step, and the number of stages."""
        copies: dict[Pe, dict[int, list[SlotCopy]]] = {}
        stages, lines = 1, dict[int, list[int]]()
        for cube, panel in enumerate(self.panels):
            lines.setdefault(panel, []).append(cube)
        for panel, line in lines.items():
            for slot, (chunk, (start, length)) in product(
                range(self.mesh.pes), enumerate(self._starts())
            ):
                home = self._home(panel, slot, start, length)
                for cube, (source, stage) in copy_tree(self.mesh, home, tuple(line)).items():
                    address = self._slot(panel, slot, start)
                    copy = SlotCopy(
                        chunk=chunk,
                        staged=source is not None,
                        offset=address if source is None else self._copied(source, slot, start),
                        target=self._copied(cube, slot, start),
                    )
                    steps = copies.setdefault((cube, slot), {})
                    steps.setdefault(chunk + 2 * (stage - 1), []).append(copy)
                    stages = max(stages, stage)
        count = len(self.chunks) + 2 * (stages - 1)
        return {
            pe: tuple(tuple(steps.get(step, ())) for step in range(count))
            for pe, steps in copies.items()
        }, stages

    def _copied(self, cube: int, slot: int, start: int) -> int:
        """The place of a slot in the copies, in elements."""
        pes = self.mesh.pes
        return ((cube * pes + slot) * self.depth + start) * self.panel // pes
