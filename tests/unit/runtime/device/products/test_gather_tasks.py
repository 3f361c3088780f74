"""Offsets of the slots that a PE copies and loads."""

from itertools import product
from math import prod

import numpy as np
import pytest

from runtime.device.products.gather_tasks import CopyLayout, gathered_chunks
from tests.unit.runtime.device.products.test_gather_plan import MESH, SIZES, plan_of


@pytest.mark.parametrize(("size", "in_rows"), [*product(SIZES, (True, False))], ids=str)
def test_a_pe_loads_its_part_of_what_the_cube_has_copied(
    size: tuple[int, int, int], in_rows: bool
) -> None:
    m, k, _ = size
    plan = plan_of(*size, a_in_rows=in_rows)
    layout = CopyLayout.of(plan, least=2048, unit=128)
    shape = (m, k) if in_rows else (k, m)
    memory = np.arange(m * k).reshape(shape)
    chunks = gathered_chunks(plan, layout, shape[1], depth_in_rows=not in_rows)
    copies = np.full(MESH.pes * layout.share, -1)
    begin = 0
    for number in range(len(plan.chunks)):
        for pe in range(MESH.pes):
            slot = chunks[pe][number].slot
            if slot is not None:
                start, (rows, columns), pitch = slot.source
                assert layout.share * pe <= slot.target
                assert slot.target + rows * columns <= layout.share * (pe + 1)
                row, column = divmod(start, pitch)
                block = memory[row : row + rows, column : column + columns]
                copies[slot.target : slot.target + rows * columns] = block.reshape(-1)
        end = max(slot.depth[1] for slot in plan.chunks[number])
        for pe in range(MESH.pes):
            first, last = plan.parts[pe % len(plan.parts)]
            depth = begin
            for panel in chunks[pe][number].panels:
                blocks = [
                    copies[offset : offset + (shape[0] - 1) * pitch + shape[1]][
                        np.add.outer(np.arange(shape[0]) * pitch, np.arange(shape[1]))
                    ]
                    for offset, shape, pitch in panel.blocks
                ]
                stop = depth + sum(panel.steps)
                expected = (
                    memory[first:last, depth:stop] if in_rows else memory[depth:stop, first:last]
                )
                np.testing.assert_array_equal(np.concatenate(blocks), expected)
                depth = stop
            if first < last:
                assert depth == end
        begin = end


def test_slots_of_three_chunks_are_kept_of_a_product_with_one_range() -> None:
    plan = plan_of(64, 8192, 4096)
    assert len(plan.chunks) > 3
    layout = CopyLayout.of(plan, least=2048, unit=128)
    assert layout.ring == 3
    assert layout.offset(2, 3) == layout.offset(2, 0) == 2 * layout.share
    assert layout.slot == max(prod((a[1] - a[0], b[1] - b[0])) for a, b in plan.chunks[0])


def test_slots_of_all_chunks_are_kept_for_further_ranges() -> None:
    plan = plan_of(512, 768, 50257)
    layout = CopyLayout.of(plan, least=2048, unit=128)
    assert layout.ring == len(plan.chunks)
    assert layout.share >= layout.ring * layout.slot
