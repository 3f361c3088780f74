"""Products of sizes that do not divide have the values of a CPU, and no time far from others."""

import re
from itertools import pairwise
from typing import Any

import pytest

from tests.torch.conftest import Runs

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.timeout(600)]


COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32)
ROWS = (2, 3, 4, 6, 8, 12, 18, 26, 37, 55, 80, 118, 129)


def _falls(case: str, fall: str) -> Any:
    """A case that is known to fall, in docs/internals/architecture.md."""
    return pytest.param(case, marks=pytest.mark.xfail(strict=True, reason=fall))


def times_of(run: Runs, *sizes: str) -> dict[str, tuple[float, float]]:
    """Simulated time and bound of `x @ w.T` by size, in ns."""
    output = run("products.py", "--no-trace", "--no-data", program_arguments=("times", *sizes))
    lines = re.findall(r"^= (\S+) (\d+) (\d+)$", output, re.MULTILINE)
    assert len(lines) == len(sizes)
    return {size: (float(time), float(bound)) for size, time, bound in lines}


def test_products_of_any_sizes_and_orders_have_the_values_of_a_cpu(run: Runs):
    lines = re.findall(
        r"^= (\S+ \S+ \d) (\w+)$",
        run("products.py", "--no-trace", program_arguments=("values",)),
        re.MULTILINE,
    )
    assert len(lines) == 64 + 30
    assert [each for each, is_near in lines if is_near != "True"] == []


def test_one_row_times_a_weight_takes_less_than_2_4_times_the_bytes_of_the_weight(run: Runs):
    time_ns, bound_ns = times_of(run, "1x4096x4096")["1x4096x4096"]
    assert bound_ns == pytest.approx(2 * 4096 * 4096 / (128 * 204.8), rel=2e-3)
    # Own panels that are loaded before the row, all of them, would make it 2.5 times.
    assert time_ns < 2.4 * bound_ns


@pytest.mark.parametrize("weight", ["768x768", "1000x1000"])
def test_times_grow_with_the_rows_without_a_step(run: Runs, weight: str):
    rows = (1, 2, 4, 8, 16, 32, 64, 128)
    times = [each for each, _ in times_of(run, *(f"{row}x{weight}" for row in rows)).values()]
    for fewer, more in pairwise(times):
        # Twice the rows; a plan with more parts may save a few percent.
        assert 0.9 < more / fewer < 2


def test_sizes_that_do_not_divide_take_the_time_of_the_next_ones_that_do(run: Runs):
    times = times_of(run, "64x1024x1024", "61x1000x1000", "61x1019x1021")
    (whole_ns, _), *others = times.values()
    for time_ns, _ in others:
        assert time_ns < 1.5 * whole_ns


def test_a_batch_takes_about_the_time_of_its_bytes_in_one_product(run: Runs):
    times = times_of(run, "1x2048x4096", "2x1x2048x2048", "3x1x1365x2048")
    (one_ns, _), *batches = times.values()
    for time_ns, _ in batches:
        # Loads by each PE from a few slices would take 4 times as long, and as launches of their
        # own three products 2.5 times.
        assert time_ns < 1.5 * one_ns


def _times_of_counts(run: Runs, matrix: str) -> list[float]:
    return [each for each, _ in times_of(run, *(f"{each}x{matrix}" for each in COUNTS)).values()]


def _times_of_rows(run: Runs, weight: str) -> list[float]:
    return [each for each, _ in times_of(run, *(f"{row}x{weight}" for row in ROWS)).values()]


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("matrix", ["1x64x1000", "8x768x768", "32x128x1000", "1x4096x128"])
def test_no_number_of_products_is_a_cliff(run: Runs, matrix: str):
    times = _times_of_counts(run, matrix)
    for (fewer, short), (more, long) in pairwise(zip(COUNTS, times, strict=True)):
        assert long / short < max(1.5, 1.05 * more / fewer)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "matrix",
    [
        "1x64x1000",
        _falls("8x768x768", "6 products take 20 % more than 8"),
        _falls("32x128x1000", "6 products take 20 % more than 8"),
        "1x4096x128",
    ],
)
def test_more_products_take_no_less_time(run: Runs, matrix: str):
    assert all(long / short > 0.9 for short, long in pairwise(_times_of_counts(run, matrix)))


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("weight", ["768x1000", "1000x4096", "768x50257"])
def test_no_number_of_rows_is_a_cliff(run: Runs, weight: str):
    # At most half more rows.
    assert all(more / fewer < 1.5 for fewer, more in pairwise(_times_of_rows(run, weight)))


@pytest.mark.nightly
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("weight", ["768x1000", "1000x4096", "768x50257"])
def test_more_rows_take_no_less_time(run: Runs, weight: str):
    # A plan with more parts may save a few percent.
    assert all(more / fewer > 0.95 for fewer, more in pairwise(_times_of_rows(run, weight)))
