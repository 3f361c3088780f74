"""Offsets of the slots that a PE copies and loads."""

from bisect import bisect_right
from itertools import product
from math import prod

import numpy as np
import pytest

from runtime.device.kernels.gathered_products import SlotCopying
from runtime.device.products.cube_mesh import (
    all_gather_load,
    relay_targets,
    relayed_gather_load,
)
from runtime.device.products.gather_machine import GatherOperand
from runtime.device.products.gather_plan import GatherPlan
from runtime.device.products.gather_relays import relayed_copies
from runtime.device.products.gather_tasks import CopyLayout, gathered_chunks
from tests.unit.runtime.device.products.test_gather_plan import MESH, SIZES, operand, plan_of

CUBES = MESH.width * MESH.height


def copied_by(
    plan: GatherPlan, layout: CopyLayout, source: GatherOperand
) -> dict[tuple[int, int], list[tuple[SlotCopying, ...]]]:
    """Copies by each PE of each chunk."""
    if plan.is_relayed:
        copied = relayed_copies(plan, layout, MESH, source)
        return {pe: [*chunks] for pe, chunks in copied.items()}
    chunks = gathered_chunks(plan, layout, source.pitch, depth_in_rows=not source.in_rows)
    return {
        (cube, pe): [each.copied for each in chunks[pe]]
        for cube in range(CUBES)
        for pe in range(MESH.pes)
    }


@pytest.mark.parametrize(
    ("size", "in_rows", "is_relayed"), [*product(SIZES, (True, False), (True, False))], ids=str
)
def test_a_pe_loads_its_part_of_what_its_cube_has(
    size: tuple[int, int, int],
    in_rows: bool,
    is_relayed: bool,
) -> None:
    m, k, _ = size
    plan = plan_of(*size, a_in_rows=in_rows)._replace(is_relayed=is_relayed)
    layout = CopyLayout.of(plan, itemsize=2)
    source = operand(m, k, in_rows=in_rows)
    shape = (m, k) if in_rows else (k, m)
    memory = np.arange(m * k).reshape(shape)
    chunks = gathered_chunks(plan, layout, shape[1], depth_in_rows=not in_rows)
    copied = copied_by(plan, layout, source)
    whole = MESH.pes * layout.share
    copies, begin = np.full(CUBES * whole, -1), 0
    for number, slots in enumerate(plan.chunks):
        written = np.zeros(copies.size, int)
        for (cube, pe), parts in copied.items():
            for (start, (rows, columns), pitch), targets in parts[number]:
                row, column = divmod(start, pitch)
                block = memory[row : row + rows, column : column + columns]
                for target in targets:
                    first = cube * whole + target
                    # It lies in the slice of the PE with this number.
                    assert first // layout.share % MESH.pes == pe
                    copies[first : first + rows * columns] = block.reshape(-1)
                    written[first : first + rows * columns] += 1
        assert written.max() == 1
        end = max(slot.depth[1] for slot in slots)
        for cube, pe in ((0, 0), (5, 3), (CUBES - 1, MESH.pes - 1)):
            first, last = plan.parts[pe % len(plan.parts)]
            panel = chunks[pe][number].panel
            if first == last or panel is None:
                assert first == last
                continue
            loaded = [
                copies[cube * whole + offset + np.add.outer(np.arange(r) * pitch, np.arange(c))]
                for offset, (r, c), pitch in panel.blocks
            ]
            values = np.concatenate([each.reshape(-1) for each in loaded])
            expected = memory[first:last, begin:end] if in_rows else memory[begin:end, first:last]
            np.testing.assert_array_equal(values.reshape(-1, panel.width), expected)
            assert sum(panel.steps) == end - begin
        begin = end


def test_a_cube_gets_each_part_by_one_link_to_its_column_or_row() -> None:
    for home, turn in product(range(CUBES), range(2)):
        relays = relay_targets(MESH, home, turn)
        assert sorted(each for targets in relays.values() for each in targets) == [*range(CUBES)]
        for relay, targets in relays.items():
            lines = [
                {divmod(each, MESH.width)[axis] for each in (relay, *targets)} for axis in (0, 1)
            ]
            assert min(map(len, lines)) == 1


def test_parts_of_one_home_take_turns_between_row_and_column_where_homes_are_few() -> None:
    # Shares of 4096 bytes: 64 rows of 768 elements are those of 3 cubes, 256 rows those of 12.
    for rows, relays in ((64, 7), (256, 4)):
        plan, gathered = plan_of(rows, 768, 768), operand(rows, 768)
        assert plan.is_relayed
        copied = relayed_copies(plan, CopyLayout.of(plan, itemsize=2), MESH, gathered)
        loading = dict[int, set[int]]()
        for (cube, _), chunks in copied.items():
            for source, _ in (each for slots in chunks for each in slots):
                middle = source.offset + source.shape[1] // 2
                home = gathered.holders[bisect_right(gathered.ends, middle)] // MESH.pes
                loading.setdefault(home, set()).add(cube)
        # A cube of the mesh, its row and its column, or one of both.
        assert max(map(len, loading.values())) == relays


def test_relays_pass_fewer_elements_over_the_busiest_link() -> None:
    # Equal shares in all cubes. Directly, the middle link of a row carries those of 2 cubes to 8.
    # With relays, the middle link of a column carries those of 2 homes of each of 2 rows to 2
    # cubes, and that of one of the 2 homes in the column to 2.
    shares = tuple((cube, 1 / CUBES) for cube in range(CUBES))
    assert all_gather_load(MESH, shares) == 16 / CUBES
    assert relayed_gather_load(MESH, shares) == 10 / CUBES
    # One cube in a corner: directly, 12 others are behind its link along the row. With relays, 3
    # cubes load each half over one link, and the cube stores the other half over it to 3 cubes.
    assert all_gather_load(MESH, ((0, 1.0),)) == 12
    assert relayed_gather_load(MESH, ((0, 1.0),)) == 3


def test_slots_of_three_chunks_are_kept_of_a_product_with_one_range() -> None:
    plan = plan_of(64, 8192, 4096)
    assert len(plan.chunks) > 3
    layout = CopyLayout.of(plan, itemsize=2)
    assert layout.ring == 3
    assert layout.offset(2, 3) == layout.offset(2, 0) == 2 * layout.share
    assert layout.slot == max(prod((a[1] - a[0], b[1] - b[0])) for a, b in plan.chunks[0])


def test_slots_of_all_chunks_are_kept_for_further_ranges() -> None:
    plan = plan_of(512, 768, 50257)
    layout = CopyLayout.of(plan, itemsize=2)
    assert layout.ring == len(plan.chunks)
    assert layout.share >= layout.ring * layout.slot
