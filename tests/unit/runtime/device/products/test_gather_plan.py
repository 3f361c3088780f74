"""A product of which one operand is copied to every cube: who computes and who copies what."""

from itertools import product

import numpy as np
import pytest

from runtime.device.products.cube_mesh import CubeMesh
from runtime.device.products.gather_machine import GatherMachine, GatherOperand
from runtime.device.products.gather_plan import GatherPlan, gather_plan
from runtime.device.products.product_plan import PeRates
from runtime.model.tiles import TileSize

MESH = CubeMesh(width=4, height=4, pes=8, scratch_bytes=1 << 20)
MACHINE = GatherMachine(
    mesh=MESH,
    rates=PeRates(pes=128, tile=TileSize(32, 64, 32), step_ns=16.0, slice_gbs=204.8),
    link_gbs=128.0,
    router_gbs=256.0,
    requests=8,
    burst_bytes=256,
    round_bytes=2048,
)
SIZES = [(1, 64, 64), (3, 100, 7), (8, 4096, 4096), (129, 1000, 257), (512, 130, 5000)]


def operand(length: int, depth: int, *, in_rows: bool = True, batch: int = 1) -> GatherOperand:
    """Matrices of 2-byte elements, dealt to PEs in shares of 4096 bytes or more."""
    elements = length * depth * batch
    share = -(-max(2048, -(-elements // 128)) // 128) * 128
    ends = [*range(share, elements, share), elements]
    return GatherOperand(
        length=length,
        pitch=depth if in_rows else length,
        in_rows=in_rows,
        ends=tuple(ends),
        holders=tuple(range(len(ends))),
        distance=length * depth,
    )


def plan_of(
    m: int, k: int, n: int, *, a_in_rows: bool = True, b_in_rows: bool = True
) -> GatherPlan:
    own, gathered = operand(n, k, in_rows=b_in_rows), operand(m, k, in_rows=a_in_rows)
    plan = gather_plan(MACHINE, own, gathered, (k, 2), own_is_b=True)
    assert plan is not None
    return plan


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_each_element_of_the_result_is_computed_once(size: tuple[int, int, int]) -> None:
    m, k, n = size
    plan, computed = plan_of(*size), np.zeros((m, n), int)
    for number, ranges in enumerate(plan.own):
        first, last = plan.parts[number % len(plan.parts)]
        for start, stop in ranges:
            computed[first:last, start:stop] += 1
    assert (computed == 1).all()
    assert max(slot.depth[1] for slot in plan.chunks[-1]) == k


@pytest.mark.parametrize("batch", [2, 3, 16, 17, 100])
@pytest.mark.parametrize("own_is_b", [True, False])
def test_each_product_of_a_batch_is_computed_once_by_pes_in_the_order_of_memory(
    batch: int, own_is_b: bool
) -> None:
    m, k, n = (3, 256, 100) if own_is_b else (100, 256, 3)
    left, right = operand(m, k, batch=batch), operand(n, k, batch=batch)
    own, gathered = (right, left) if own_is_b else (left, right)
    plan = gather_plan(MACHINE, own, gathered, (k, 2), own_is_b=own_is_b, batch=batch)
    assert plan is not None
    assert not plan.is_relayed
    computed, last = np.zeros((batch, 100, 3), int), 0
    for number, ranges in enumerate(plan.own):
        part = slice(*plan.parts[number % len(plan.parts)])
        for start, stop in ranges:
            matrix = start // 100
            assert matrix == (stop - 1) // 100
            computed[matrix, start % 100 : start % 100 + stop - start, part] += 1
            assert last <= matrix
            last = matrix
    assert (computed == 1).all()


def test_cubes_of_a_batch_whose_matrices_they_hold_read_nothing_from_others() -> None:
    times = [
        gather_plan(
            MACHINE,
            operand(1024, 1024, batch=16)._replace(distance=distance),
            operand(64, 1024, batch=16),
            (1024, 2),
            own_is_b=True,
            batch=16,
        )
        for distance in (1024 * 1024, 1024)
    ]
    stacked, mixed = (each.time_ns for each in times if each is not None)
    # The rows of mixed matrices lie in all cubes: half of 32 MiB passes 4 links of 128 GB/s.
    assert mixed - stacked > 0.5 * 16 * 2 * 1024 * 1024 / 4 / 128


def plan_of_batch(batch: int, rows: int) -> GatherPlan:
    """The plan of `batch` products of (rows, 768) times (768, 768), the own operand by columns."""
    operands = operand(768, 768, batch=batch), operand(rows, 768, batch=batch)
    plan = gather_plan(MACHINE, *operands, (768, 2), own_is_b=True, batch=batch)
    assert plan is not None
    return plan


def matrices_of_cubes(plan: GatherPlan) -> list[set[int]]:
    """The matrices of which the PEs of each cube have ranges."""
    return [
        {start // 768 for ranges in plan.own[first : first + 8] for start, _ in ranges}
        for first in range(0, 128, 8)
    ]


@pytest.mark.parametrize("batch", [12, 17, 24])
def test_each_cube_multiplies_the_rows_of_a_batch_that_it_holds(batch: int) -> None:
    plan = plan_of_batch(batch, 8)
    held = 768 * batch // 16
    for cube in range(16):
        ranges = [each for pe in plan.own[8 * cube : 8 * cube + 8] for each in pe]
        assert abs(ranges[0][0] - held * cube) <= 48
        assert abs(ranges[-1][1] - held * (cube + 1)) <= 48


def test_few_rows_of_a_neighbour_save_a_cube_the_copy_of_another_matrix() -> None:
    # 5.33 cubes hold one of three matrices; 768 / 16 rows are loaded from a neighbour.
    assert [len(each) for each in matrices_of_cubes(plan_of_batch(3, 8))] == [1] * 16
    # A third of a cube's 288 rows would be there behind the copies.
    assert sum(len(each) > 1 for each in matrices_of_cubes(plan_of_batch(6, 8))) == 4


def test_neighbours_with_the_same_ranges_multiply_rows_of_their_cube() -> None:
    # Eight neighbours that share a cube with two matrices would have ranges of other cubes.
    assert [len(each) for each in matrices_of_cubes(plan_of_batch(3, 300))] == [1] * 16
    assert len(plan_of_batch(6, 300).parts) < 8


def test_own_panels_whose_rows_would_begin_inside_bursts_have_the_whole_depth() -> None:
    # Rows of 2000 B lie side by side; pieces of 1024 B would touch five bursts of 256 B.
    assert plan_of(118, 1000, 4096).step >= 1000
    assert plan_of(118, 4096, 4096).step < 4096


@pytest.mark.parametrize(("size", "in_rows"), [*product(SIZES, (True, False))], ids=str)
def test_the_pes_of_a_cube_copy_each_element_once(
    size: tuple[int, int, int], in_rows: bool
) -> None:
    m, k, _ = size
    copied = np.zeros((m, k), int)
    for chunk in plan_of(*size, a_in_rows=in_rows).chunks:
        assert len(chunk) == MESH.pes
        for slot in chunk:
            copied[slice(*slot.free), slice(*slot.depth)] += 1
    assert (copied == 1).all()


def test_a_pe_owns_the_columns_that_its_slice_holds() -> None:
    plan = plan_of(8, 4096, 4096)
    assert plan.own == tuple(((32 * pe, 32 * pe + 32),) for pe in range(128))
    # Shares of 768 x 1000 elements have 7 or 8 rows.
    ends = operand(1000, 768).ends
    for pe, ((start, stop),) in enumerate(plan_of(1, 768, 1000).own):
        assert abs(stop * 768 - ends[pe]) <= 768 / 2
        assert stop - start in (7, 8) or pe == 127


def test_neighbours_divide_many_rows_and_share_their_columns() -> None:
    plan = plan_of(512, 1024, 4096)
    parts = len(plan.parts)
    assert parts > 1
    assert plan.own[0] == plan.own[parts - 1] == ((0, 32 * parts),)
    # A PE copies a part of what it multiplies.
    for pe, slot in enumerate(plan.chunks[0]):
        first, last = plan.parts[pe % parts]
        assert first <= slot.free[0] < slot.free[1] <= last


def test_one_row_is_cut_along_the_depth() -> None:
    plan = plan_of(1, 4096, 4096)
    assert plan.by_depth
    assert {slot.free for chunk in plan.chunks for slot in chunk} == {(0, 1)}
    # Six PEs copy the halves of three rows.
    plan = plan_of(3, 4096, 4096)
    assert not plan.by_depth
    copied = [slot.free for slot in plan.chunks[0] if slot.elements]
    assert copied == [(0, 1), (0, 1), (1, 2), (1, 2), (2, 3), (2, 3)]


def test_columns_that_do_not_fit_the_scratch_are_ranges_of_their_own() -> None:
    plan = plan_of(512, 768, 50257)
    assert plan.is_kept
    assert {len(ranges) for ranges in plan.own} == {max(map(len, plan.own))}


def test_a_scratch_without_room_for_the_sums_has_no_plan() -> None:
    machine = MACHINE._replace(mesh=MESH._replace(scratch_bytes=20_000))
    own, gathered = operand(4096, 512), operand(512, 512)
    assert gather_plan(machine, own, gathered, (512, 2), own_is_b=True) is None


def test_rows_take_no_less_time_than_fewer_rows() -> None:
    times = [plan_of(rows, 4096, 4096).time_ns for rows in (1, 2, 4, 8, 16, 64, 128, 256, 512)]
    assert times == sorted(times)


def test_own_panels_wait_where_one_chunk_has_all_of_the_row() -> None:
    plan = plan_of(1, 4096, 4096)
    assert plan.is_relayed
    assert len(plan.chunks) == 1
    # The slices serve at most 700 ns of panels before those PEs that read the copies of the row.
    panel = 32 * plan.step * 2
    assert plan.early == max(1, int(700 * 204.8 / panel)) < 4096 // plan.step
    # The panels of further chunks are multiplied while the next chunk is copied.
    plan = plan_of(16, 4096, 4096)
    assert len(plan.chunks) > 1
    assert plan.early == plan.ring
