"""The recursion of the pipeline against the closed form for whole tiles, and cases by hand."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench.oracle.theory.engines.gemm import GemmNumbers, GemmShape
from tests.fidelity.theory.tile_pipeline import PipelineTimes, StagedGemm, staged_times

TILE = GemmShape(4, 8, 2)
WHOLE = st.builds(
    GemmShape, *(st.integers(1, 4).map(lambda count, side=side: count * side) for side in TILE)
)


def numbers(cycles: int) -> GemmNumbers:
    """A step of `cycles` ns; the port moves a byte a nanosecond."""
    return GemmNumbers(TILE, 64, Fraction(1, cycles), *[Fraction(1)] * 3)


def product(shape: GemmShape, step_ps: int, **extras: bool) -> StagedGemm:
    return StagedGemm(
        shape=shape,
        itemsize=2,
        result_itemsize=4,
        step_ps=lambda _size, _last: step_ps,
        epilogue_ps=lambda _elements: 0,
        **extras,
    )


@given(WHOLE, st.sampled_from([1, 50, 96, 200]))
@settings(max_examples=40)
def test_products_of_whole_tiles_take_the_time_of_the_closed_form(shape: GemmShape, cycles: int):
    given_numbers = numbers(cycles)
    gemm = product(shape, given_numbers.tile_ps())
    assert staged_times(given_numbers, gemm).span_ps == given_numbers.staged_ps(shape, 2, 4)


def test_one_step_waits_for_its_fetch_only():
    # 2 x (4 x 8 + 8 x 2) = 96 B, then a step of 50 ns, then 4 x 2 x 4 = 32 B.
    assert staged_times(numbers(50), product(TILE, 50_000)) == PipelineTimes(178_000, 96_000, 0)


def test_the_third_output_tile_waits_for_the_first_store():
    # Fetches of 96 ns end at 96, 192, 288; an epilogue of 1 us keeps the first tile until 1,098.
    gemm = StagedGemm(
        shape=GemmShape(12, 8, 2),
        itemsize=2,
        result_itemsize=1,
        step_ps=lambda _size, _last: 1_000,
        epilogue_ps=lambda _elements: 1_000_000,
    )
    times = staged_times(numbers(1), gemm)
    # Stored at 97 + 1,000 + 8 = 1,105; the engine is idle from 193 on, the operands are there at
    # 288.
    assert times.store_stall_ps == (1_105 - 288) * 1_000
    assert times.fetch_stall_ps == (96 + (192 - 97) + (288 - 193)) * 1_000


def test_initial_value_and_bias_pass_the_fetch_port():
    plain = staged_times(numbers(50), product(TILE, 50_000)).span_ps
    extended = product(TILE, 50_000, has_start=True, has_bias=True)
    # 4 x 2 and 2 elements of 4 B.
    assert staged_times(numbers(50), extended).span_ps == plain + (32 + 8) * 1_000
