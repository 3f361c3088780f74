"""Times of the vector engine, against its closed form and against a run vector by vector."""

from fractions import Fraction
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.oracle.theory.engines.vector_engine import Elements, VectorEngine
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text())
LANES, FILL, LEVELS = 128, 4, 7


def engine(**values: float) -> VectorEngine:
    return VectorEngine(
        FILE.with_values({f"pe.{key.replace('__', '.')}": value for key, value in values.items()})
    )


def block(vectors: int, item_bytes: int = 4) -> Elements:
    return Elements(vectors * LANES, item_bytes)


@pytest.mark.parametrize("vectors", [1, 2, 3, 10, 256])
@pytest.mark.parametrize("cycles", [1, 3, 8])
@pytest.mark.parametrize("bw_gbs", [128, 512, 2048])
@pytest.mark.parametrize("item_bytes", [1, 2, 4])
def test_whole_vectors_take_fill_and_the_slowest_stage(
    vectors: int, cycles: int, bw_gbs: int, item_bytes: int
) -> None:
    one = engine(fetch_store__bw_gbs=bw_gbs, math__cycles__add=cycles)
    operand = block(vectors, item_bytes)
    fetch_ns = Fraction(2 * LANES * item_bytes, bw_gbs)
    store_ns = Fraction(LANES * item_bytes, bw_gbs)
    slowest_ns = max(fetch_ns, cycles, store_ns)
    first_ns = fetch_ns + FILL + cycles + store_ns
    expected_ps = 1000 * (first_ns + (vectors - 1) * slowest_ns)
    assert one.elementwise_ps("add", [operand] * 2, operand) == ceil(expected_ps)


def test_a_sum_of_32768_elements_is_bound_by_its_fetch() -> None:
    operand = Elements(32768)
    assert engine().elementwise_ps("add", [operand] * 2, operand) == 1000 * (
        2 + FILL + 1 + 1 + 255 * 2
    )


def test_a_constant_is_not_fetched() -> None:
    assert engine().elementwise_ps("full", [], block(3)) == 1000 * (FILL + 1 + 1 + 2)


def test_a_reduction_stores_after_its_tree() -> None:
    assert (
        engine().reduction_ps("sum", block(64), Elements(64))
        == 1000 * (1 + FILL + 64 + LEVELS) + 500
    )


def test_softmax_reads_its_elements_three_times() -> None:
    largest_ns, total_ns = 1 + FILL + 64 + LEVELS, 1 + FILL + 64 * 9 + LEVELS + 8
    quotient_ns = 1 + FILL + 64 * 9 + 1
    assert engine().softmax_ps(block(64), 1) == 1000 * (largest_ns + total_ns + quotient_ns)


def test_softmax_divides_once_for_each_vector_of_rows() -> None:
    """128 lanes: 128 rows are one vector, 129 are two, and a division takes 8 cycles."""
    one = engine().softmax_ps(block(64), 128)
    assert one == engine().softmax_ps(block(64), 1)
    assert engine().softmax_ps(block(64), 129) == one + 8_000
    assert engine().softmax_ps(block(64), 64 * 128) == one + 63 * 8_000


def test_an_epilogue_moves_no_data() -> None:
    assert engine().epilogue_ps("gelu", 1024) == 1000 * (FILL + 8 * 8)


@given(
    elements=st.integers(1, 2000),
    repeated=st.integers(1, 2000),
    item_bytes=st.sampled_from([1, 2, 4, 8]),
    cycles=st.integers(1, 9),
    bw_gbs=st.sampled_from([100, 301.5, 512, 1024, 4000]),
)
def test_the_longest_path_is_the_end_of_a_run_vector_by_vector(
    elements: int, repeated: int, item_bytes: int, cycles: int, bw_gbs: float
) -> None:
    one = engine(fetch_store__bw_gbs=bw_gbs, math__cycles__fma=cycles)
    operands = [Elements(elements, item_bytes), Elements(min(repeated, elements), item_bytes)]
    lanes = LANES // 2 if item_bytes == 8 else LANES
    places = range(0, elements + lanes, lanes)
    fetched = computed = stored = Fraction(0)
    for begin, end in pairwise(place for place in places if place < elements + lanes):
        sizes = [max(min(end, each.count) - begin, 0) * item_bytes for each in operands]
        fetched += Fraction(sum(sizes)) / Fraction(bw_gbs)
        computed = max(fetched, computed) + cycles
        stored = max(computed + FILL, stored) + Fraction(sizes[0]) / Fraction(bw_gbs)
    found_ps = one.elementwise_ps("fma", operands, operands[0])
    assert found_ps == ceil(1000 * stored)
