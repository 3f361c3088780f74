"""The plan of a product follows from its sizes and from where its operands are."""

from itertools import pairwise, product

import pytest

from runtime.device.products.cube_plan import CubeGrid
from runtime.device.products.gather_plan import gather_plan
from runtime.device.products.product_choice import ProductChoice, ProductMatrices, product_choice
from runtime.device.products.product_plan import ProductSize
from tests.unit.runtime.device.products.test_gather_plan import MACHINE, operand

SIMULATED = {
    # Rows, depth, columns, and whether the weight lies as `linear` has it: microseconds of blocks,
    # by parts of the sums, and of copies of the weight and of the rows, on the default machine.
    (300, 1000, 1000, False): {
        "blocks 1": 22.5,
        "blocks 2": 19.4,
        "blocks 4": 26.4,
        "weight": 16.4,
    },
    (1000, 1000, 1000, False): {"blocks 1": 28.0, "weight": 17.4},
    (200, 700, 700, False): {"blocks 1": 12.3, "blocks 2": 11.7, "blocks 4": 11.4, "weight": 10.6},
    (64, 1000, 3000, False): {"blocks 2": 21.8, "blocks 4": 18.1, "blocks 8": 15.6, "rows": 13.5},
    (100, 1000, 1000, False): {"blocks 2": 12.3, "blocks 4": 15.4, "blocks 8": 11.3, "rows": 11.2},
    (33, 700, 900, False): {"blocks 1": 9.8, "blocks 2": 9.6, "blocks 4": 8.2, "weight": 12.2},
    (777, 333, 1500, False): {"blocks 1": 21.3, "weight": 13.4},
    (500, 500, 500, False): {"blocks 1": 14.2, "blocks 2": 12.1, "blocks 4": 13.2, "weight": 5.4},
    (640, 300, 1000, False): {"blocks 1": 17.1, "blocks 2": 18.6, "weight": 8.0},
    (1000, 200, 1000, False): {"blocks 1": 12.9, "blocks 2": 16.1, "weight": 7.4},
    (16, 768, 768, False): {"blocks 2": 5.7, "blocks 4": 5.2, "blocks 8": 5.8, "blocks 16": 7.5},
    (64, 1000, 200, False): {"blocks 2": 5.5, "blocks 4": 4.7, "blocks 8": 5.6, "weight": 6.2},
    (1, 4096, 4096, False): {"blocks 16": 7.3, "blocks 32": 9.1, "blocks 64": 13.3},
    (1000, 1000, 1000, True): {"blocks 1": 26.1, "weight": 14.6, "rows": 15.7},
    (200, 700, 700, True): {"blocks 1": 13.2, "blocks 2": 10.3, "weight": 10.5, "rows": 5.7},
    (512, 512, 512, True): {"blocks 1": 7.4, "blocks 2": 10.3, "weight": 4.9, "rows": 5.5},
    (500, 500, 500, True): {"blocks 1": 8.8, "blocks 2": 10.9, "weight": 5.9, "rows": 6.6},
    (300, 1000, 1000, True): {"blocks 1": 18.0, "blocks 2": 17.2, "weight": 13.8, "rows": 8.2},
    (64, 64, 512, True): {"blocks 1": 1.3, "weight": 3.0, "rows": 2.2},
    (8192, 64, 64, True): {"blocks 1": 3.2, "weight": 1.6},
}


def choice(
    m: int,
    k: int,
    n: int,
    *,
    b_in_rows: bool = True,
    grid: CubeGrid | None = None,
    batch: int = 1,
) -> ProductChoice:
    """The plan of (m, k) times a weight: in memory (n, k) with `b_in_rows`, else (k, n)."""
    a, b = operand(m, k, batch=batch), operand(n, k, in_rows=b_in_rows, batch=batch)
    product = ProductMatrices(
        machine=MACHINE,
        batch=batch,
        size=ProductSize(m, k, n, 2),
        a=a,
        b=b,
        shares=(len(a.ends), len(b.ends)),
        grid=grid,
        most_parts=k,
    )
    return product_choice(product)


@pytest.mark.parametrize("rows", [1, 7, 100, 512])
def test_the_rows_are_copied_to_a_weight_as_linear_has_it(rows: int) -> None:
    for size in (1000, 4096):
        chosen = choice(rows, size, size)
        assert (chosen.kind, chosen.own_is_b) == ("copies", True)


def test_the_chosen_plan_is_near_the_fastest_one_and_its_estimate_near_the_simulated_time() -> None:
    slower, wrong = 1.0, 1.0
    for size, times in SIMULATED.items():
        m, k, n, in_rows = size
        time_ns, kind, parts, own_is_b = choice(m, k, n, b_in_rows=in_rows)
        name = f"blocks {parts}" if kind == "blocks" else "rows" if own_is_b else "weight"
        slower = max(slower, times[name] / min(times.values()))
        ratio = time_ns / 1000 / times[name]
        wrong = max(wrong, ratio, 1 / ratio)
    print(f"{slower:.2f} times the fastest plan, estimates wrong by {wrong:.2f} times at most")
    assert slower < 1.1
    assert wrong < 1.9


def test_a_count_of_products_that_no_cube_divides_has_copies_of_the_rows() -> None:
    # Blocks of matrices in two cubes load half of them over one link: 10.0 us instead of 6.0.
    for batch in (16, 17, 32):
        chosen = choice(1, 768, 768, b_in_rows=False, batch=batch)
        assert (chosen.kind, chosen.own_is_b) == ("copies", True)


def test_a_weight_is_copied_to_many_rows() -> None:
    chosen = choice(8192, 64, 64)
    assert (chosen.kind, chosen.own_is_b) == ("copies", False)


@pytest.mark.parametrize("size", [(64, 64, 64), (64, 64, 512)], ids=str)
def test_a_small_product_has_blocks(size: tuple[int, int, int]) -> None:
    # Few cubes hold its operands, whose PEs compute it: little is far.
    assert choice(*size)[1:3] == ("blocks", 1)


def test_each_cube_sums_the_part_of_the_depth_that_it_holds() -> None:
    # A weight (k, n) lies row by row: 16 parts of the depth are those of the cubes.
    for size in (768, 4096):
        assert choice(1, size, size, b_in_rows=False)[1:3] == ("blocks", 16)
    # The sums of many rows take longer to pass the links than the weight.
    assert choice(128, 768, 768, b_in_rows=False)[1:3] != ("blocks", 16)


def test_a_grid_of_cubes_is_taken_where_both_sides_are_long() -> None:
    grid = CubeGrid(rows=4, columns=4, part_rows=2, part_columns=4, chunks=(128,) * 8)
    assert choice(1024, 1024, 1024, grid=grid).kind == "grid"
    assert choice(64, 1024, 1024, grid=grid._replace(chunks=(128,) * 8)).kind == "copies"


def test_more_rows_are_not_estimated_to_take_less_time() -> None:
    times = [choice(rows, 4096, 4096).time_ns for rows in (1, 2, 4, 8, 16, 32, 64, 128, 256)]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("depth", "columns"), [*product((768, 4096), (1000, 11008, 50257))], ids=str
)
def test_estimates_have_no_cliff_over_the_rows(depth: int, columns: int) -> None:
    # From two rows on at most half more; rows 3, 37 and 129 divide by no tile.
    rows = (2, 3, 4, 6, 8, 12, 18, 26, 37, 55, 80, 118, 129, 192, 256, 384, 512)
    times = [choice(each, depth, columns).time_ns for each in rows]
    for fewer, more in pairwise(times):
        # A plan with more parts, which begins somewhere, may be a little shorter.
        assert 0.97 < more / fewer < 1.5


@pytest.mark.parametrize("size", [(1, 4096, 128), (8, 768, 768), (64, 128, 1000)], ids=str)
def test_estimates_have_no_cliff_over_the_products_of_a_batch(size: tuple[int, int, int]) -> None:
    counts = (1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32)
    times = [choice(*size, batch=each).time_ns for each in counts]
    for (fewer, short), (more, long) in pairwise(zip(counts, times, strict=True)):
        # Fewer cubes have copies of one matrix, which may save more than another one takes.
        assert 0.6 < long / short < max(1.5, more / fewer)


def test_few_large_products_of_a_batch_have_copies_in_the_cubes_that_hold_them() -> None:
    for batch in (2, 3, 16):
        assert choice(1, 4096, 4096, batch=batch)[1:] == ("copies", 1, True)


def test_parts_of_the_depth_divide_a_batch_whose_rows_are_those_of_the_depth() -> None:
    chosen = choice(1, 4096, 128, b_in_rows=False, batch=8)
    assert chosen.kind == "blocks"
    assert chosen.parts > 1


def test_each_product_of_a_batch_is_a_product_of_its_own_where_a_grid_divides_it() -> None:
    grid = CubeGrid(rows=4, columns=4, part_rows=2, part_columns=4, chunks=(128,) * 16)
    assert choice(2048, 2048, 2048, grid=grid, batch=2).kind == "each"


def test_the_rows_of_a_small_weight_come_by_relays_where_they_are_many() -> None:
    plans = [
        gather_plan(MACHINE, operand(768, 768), operand(rows, 768), (768, 2), own_is_b=True)
        for rows in (1, 8, 64, 512)
    ]
    assert [plan is not None and plan.is_relayed for plan in plans] == [False, True, True, True]
