"""Independent products of a launch: their blocks on PEs, and what each PE loads."""

from collections.abc import Sequence

import pytest

from runtime.device.products.cube_mesh import CubeMesh
from runtime.device.products.gather_plan import GatherMachine
from runtime.device.products.joined_plan import (
    JoinedFactors,
    JoinedOperand,
    JoinedProduct,
    PeBlocks,
    joined_plan,
)
from runtime.device.products.product_plan import PeRates, ProductSize
from runtime.model.tiles import TileSize

MACHINE = GatherMachine(
    mesh=CubeMesh(width=4, height=4, pes=8, scratch_bytes=1 << 20),
    rates=PeRates(pes=128, tile=TileSize(32, 64, 32), step_ns=16.0, slice_gbs=256.0),
    link_gbs=128.0,
    router_gbs=256.0,
    requests=4,
    burst_bytes=256,
    round_bytes=2048,
)
TOKENS, WIDTH, ITEMSIZE = 32, 64, 4


def operand(matrix: int, pitch: int = WIDTH, *, in_rows: bool, slices: int = 2) -> JoinedOperand:
    return JoinedOperand(matrix=matrix, in_rows=in_rows, pitch=pitch, slices=slices)


def projections(count: int) -> tuple[JoinedProduct, ...]:
    """`x @ w.T` for several `w`."""
    return tuple(
        JoinedProduct(
            size=ProductSize(TOKENS, WIDTH, WIDTH, ITEMSIZE),
            factors=(
                JoinedFactors(
                    operand(0, in_rows=True), operand(1 + number, in_rows=True, slices=4), WIDTH
                ),
            ),
            bias=None,
        )
        for number in range(count)
    )


def gradients() -> tuple[JoinedProduct, ...]:
    """`grad.T @ x`, `grad @ w` and a row of ones times `grad`."""
    grad, w, x, ones = 0, 1, 2, 3
    return (
        JoinedProduct(
            ProductSize(WIDTH, TOKENS, WIDTH, ITEMSIZE),
            factors=(
                JoinedFactors(operand(grad, in_rows=False), operand(x, in_rows=False), TOKENS),
            ),
            bias=None,
        ),
        JoinedProduct(
            ProductSize(TOKENS, WIDTH, WIDTH, ITEMSIZE),
            factors=(
                JoinedFactors(
                    operand(grad, in_rows=True), operand(w, in_rows=False, slices=4), WIDTH
                ),
            ),
            bias=None,
        ),
        JoinedProduct(
            ProductSize(1, TOKENS, WIDTH, ITEMSIZE),
            factors=(
                JoinedFactors(
                    operand(ones, TOKENS, in_rows=True, slices=1),
                    operand(grad, in_rows=False),
                    TOKENS,
                ),
            ),
            bias=None,
        ),
    )


def loaded_bytes(plan: Sequence[PeBlocks]) -> int:
    return ITEMSIZE * sum(region.elements for share in plan for region in share.regions)


@pytest.mark.parametrize("products", [projections(1), projections(3), gradients()])
def test_blocks_cover_each_result_once(products: tuple[JoinedProduct, ...]):
    plan = joined_plan(products, MACHINE)
    assert plan is not None
    computed = [
        (block.number, row, column)
        for share in plan
        for block in share.blocks
        for row in range(*block.rows)
        for column in range(*block.columns)
    ]
    expected = [
        (number, row, column)
        for number, each in enumerate(products)
        for row in range(each.size.m)
        for column in range(each.size.n)
    ]
    assert sorted(computed) == expected


@pytest.mark.parametrize("products", [projections(3), gradients()])
def test_a_pe_loads_the_regions_of_its_blocks_and_none_twice(products: tuple[JoinedProduct, ...]):
    plan = joined_plan(products, MACHINE)
    assert plan is not None
    for share in plan:
        for block in share.blocks:
            for needed in block.regions:
                assert any(each.contains(needed) for each in share.regions)
        for region in share.regions:
            others = [each for each in share.regions if each is not region]
            assert not any(each.contains(region) for each in others)


def test_the_gradients_of_a_layer_load_little_more_than_their_operands():
    plan = joined_plan(gradients(), MACHINE)
    assert plan is not None
    once = ITEMSIZE * (2 * TOKENS * WIDTH + WIDTH * WIDTH + TOKENS)
    in_a_launch_each = sum(
        loaded_bytes(alone)
        for each in gradients()
        if (alone := joined_plan((each,), MACHINE)) is not None
    )
    assert once <= loaded_bytes(plan) <= 1.5 * once
    assert loaded_bytes(plan) < in_a_launch_each


def test_a_sum_of_products_reads_the_operands_of_each_and_stores_one_result():
    parts = projections(3)
    factors = tuple(each for part in parts for each in part.factors)
    summed = parts[0]._replace(
        size=ProductSize(TOKENS, 3 * WIDTH, WIDTH, ITEMSIZE), factors=factors
    )
    plan = joined_plan((summed,), MACHINE)
    assert plan is not None
    blocks = [block for share in plan for block in share.blocks]
    assert sum(block.elements for block in blocks) == TOKENS * WIDTH
    assert all(len(block.regions) == 2 * len(parts) for block in blocks)


def test_small_products_stay_in_the_cube_that_holds_them():
    plan = joined_plan(projections(3), MACHINE)
    assert plan is not None
    assert len(plan) <= MACHINE.mesh.pes


def test_an_operand_in_many_cubes_has_no_plan():
    (product,) = projections(1)
    (factors,) = product.factors
    b = operand(1, in_rows=True, slices=3 * MACHINE.mesh.pes)
    wide = product._replace(factors=(factors._replace(b=b),))
    assert joined_plan((wide,), MACHINE) is None


def test_a_depth_that_no_pe_holds_has_no_plan():
    deep = JoinedProduct(
        ProductSize(TOKENS, 1 << 12, WIDTH, ITEMSIZE),
        factors=(
            JoinedFactors(
                operand(0, 1 << 12, in_rows=True), operand(1, 1 << 12, in_rows=True), 1 << 12
            ),
        ),
        bias=None,
    )
    assert joined_plan((deep,), MACHINE) is None
