from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.device.products.product_plan import (
    OperandSize,
    PeMemory,
    PeRates,
    ProductDepth,
    ProductSize,
    divided,
    grid,
    scratch_plan,
)
from runtime.model.tiles import TileSize

# 128 PEs whose engine multiplies (32, 64) times (64, 32) in 16 ns; 1 MiB of scratch each.
RATES = PeRates(128, TileSize(32, 64, 32), 16.0, 204.8)
MEMORY = PeMemory(1 << 20, 2048, 204.8)
EVERYWHERE = (128, 128)


def operands(m: int, k: int, n: int) -> tuple[OperandSize, OperandSize]:
    """Flat row-major matrices (m, k) and (k, n)."""
    return (
        OperandSize(span=(0, m), cuts=(m,), unit=32, pitch=0),
        OperandSize(span=(0, n), cuts=(n,), unit=32, pitch=n),
    )


def test_a_product_of_few_rows_is_divided_by_columns_and_one_of_few_columns_by_rows():
    assert grid(ProductSize(4, 1024, 4096, 2), RATES, EVERYWHERE) == (1, 128)
    assert grid(ProductSize(4096, 1024, 4, 2), RATES, EVERYWHERE) == (128, 1)


def test_a_large_product_is_divided_in_two_directions_since_square_blocks_load_least():
    rows, columns = grid(ProductSize(4096, 4096, 4096, 2), RATES, EVERYWHERE)
    assert rows * columns == 128
    assert min(rows, columns) == 8


def test_a_product_of_one_tile_stays_on_one_pe():
    assert grid(ProductSize(32, 4096, 32, 2), RATES, EVERYWHERE) == (1, 1)


def test_an_operand_in_one_slice_limits_the_pes_that_read_it():
    rows, columns = grid(ProductSize(32, 1024, 4096, 2), RATES, (1, 128))
    # One slice serves 32 x 1024 elements to each of C PEs, 320 ns each; a PE loads as much once
    # more for each of its 128 / C tile columns. With C = 12 both take 12 x 320 ns.
    assert (rows, columns) == (1, 12)


@pytest.mark.parametrize(
    ("length", "parts", "unit", "spans"),
    [
        (100, 2, 32, [(0, 64), (64, 100)]),
        (100, 9, 32, [(0, 32), (32, 64), (64, 96), (96, 100)]),
        (32, 1, 32, [(0, 32)]),
    ],
)
def test_a_length_is_divided_at_whole_units(
    length: int, parts: int, unit: int, spans: list[tuple[int, int]]
):
    assert divided(length, parts, unit) == spans


@given(
    st.tuples(*[st.integers(1, 9000)] * 3),
    st.sampled_from([1, 2, 4]),
)
def test_every_panel_that_is_in_use_fits_scratch_and_every_element_is_covered_once(
    shape: tuple[int, int, int], itemsize: int
):
    m, k, n = shape
    a = OperandSize(span=(0, m), cuts=(m // 2, m), unit=32, pitch=0)
    b = OperandSize(span=(0, n), cuts=(n,), unit=32, pitch=n)
    plan = scratch_plan(a, b, ProductDepth(k, 64, itemsize), 16.0, MEMORY)
    held = [span for group in plan.groups for span in group]
    spans = (held, list(plan.moving)) if plan.held == "a" else (list(plan.moving), held)
    for each, length in zip((*spans, list(plan.depths)), (m, n, k), strict=True):
        assert each[0][0] == 0
        assert all(first[1] == second[0] for first, second in pairwise(each))
        assert each[-1][1] == length
    assert not any(start < m // 2 < stop for start, stop in spans[0])
    depth = max(stop - start for start, stop in plan.depths)
    group = max(sum(stop - start for start, stop in each) for each in plan.groups)
    longest = max(stop - start for start, stop in plan.moving)
    used = group * (depth * itemsize + 4)
    used += (plan.slots + 1) * longest * (depth * itemsize + 4)
    if len(plan.depths) > 1:
        used += (plan.slots + 1) * longest * group * 4
    assert used <= MEMORY.scratch_bytes


def test_an_operand_that_fits_is_loaded_as_a_whole_where_narrow_panels_use_few_channels():
    # 32 columns at a pitch of 1024 bytes lie on one eighth of the channels, 512 on all.
    a, b = operands(512, 512, 512)
    plan = scratch_plan(a, b, ProductDepth(512, 64, 2), 16.0, MEMORY)
    assert plan.held == "b"
    assert plan.groups == (((0, 512),),)
    assert plan.moving[0] == (0, 32)
