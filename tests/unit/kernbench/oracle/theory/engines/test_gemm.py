"""Steps, bytes and times of a tiled product, checked by hand, by recursion and by counting."""

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st

from kernbench.oracle.theory.engines.gemm import (
    GemmNumbers,
    GemmShape,
    padding_utilisation,
    steps,
    streamed_bytes,
    systolic_cycles,
)
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.model.tiles import TilePlan, TileSize
from tests.fidelity.engines.systolic import reference
from tests.support.topologies import variant_text

TILE = GemmShape(32, 64, 32)
NUMBERS = GemmNumbers(TILE, 4096, Fraction(1), Fraction(512), Fraction("204.8"), Fraction(256))
"""4096 multiplications a ns, 512 B/ns to the registers, 204.8 B/ns from the slice."""

sides = st.builds(GemmShape, *[st.integers(1, 20)] * 3)
tiles = st.builds(GemmShape, *[st.integers(1, 9)] * 3)


def test_the_numbers_are_those_of_the_file() -> None:
    file = variant_text(
        pe__tile={"m": 8, "k": 16, "n": 24},
        pe__gemm={"macs_per_cycle": 100, "clock_ghz": 1.3},
        pe__fetch_store__bw_gbs=77.7,
        hbm__num_pcs=4,
        hbm__pc_bw_gbs=10.0,
        cube__hbm_ctrl__efficiency=0.7,
        xbar__to_hbm_bw_gbs=20.0,
        pe__tcm__bw_gbs=512.0,
    )
    exact = Fraction("1.3"), Fraction("77.7"), Fraction(28), Fraction(20)
    assert GemmNumbers.of(TopologyFile.of(file)) == GemmNumbers(GemmShape(8, 16, 24), 100, *exact)


def test_a_narrow_port_of_tcm_is_the_bandwidth_of_memory() -> None:
    narrow = GemmNumbers.of(TopologyFile.of(variant_text(pe__tcm__bw_gbs=100.0)))
    assert narrow.memory_gbs == 100


def test_a_full_tile_takes_sixteen_nanoseconds_to_compute_and_to_fetch() -> None:
    # 32 x 64 x 32 / 4096 = 16 cycles; 2 tiles x 2048 elements x 2 B / 512 B/ns = 16 ns, twice that
    # in f32.
    assert NUMBERS.tile_ps() == 16_000
    assert NUMBERS.fetch_ps(2) == 16_000
    assert NUMBERS.fetch_ps(4) == 32_000
    assert NUMBERS.store_ps(2) == 4_000


def test_a_tile_takes_whole_cycles_and_whole_picoseconds() -> None:
    odd = GemmNumbers(GemmShape(3, 5, 7), 10, Fraction("1.3"), *[Fraction(1)] * 3)
    # 105 multiplications are 11 cycles of 769.23 ps, 8461.5 in all.
    assert odd.tile_ps() == 8_462


def test_bounds_of_a_cube_by_hand() -> None:
    product = GemmShape(512, 512, 512)
    # 2^27 multiplications at 4096 per ns; each of 2048 steps reads 2 tiles of 4 KiB, and 512 KiB
    # are written.
    assert NUMBERS.compute_bound_ps(product) == 32_768_000
    assert sum(streamed_bytes(product, TILE, 2)) == 2048 * 8192
    assert (
        NUMBERS.memory_bound_ps(2048 * 8192, 1 << 19)
        == (2048 * 8192 + (1 << 19)) / Fraction("204.8") * 1000
    )


def test_the_link_to_the_slice_limits_reads() -> None:
    fast = GemmNumbers(TILE, 4096, Fraction(1), Fraction(512), Fraction(400), Fraction(256))
    assert fast.memory_bound_ps(2560, 0) == 10_000
    assert fast.memory_bound_ps(2560, 2560) == 12_800


@settings(deadline=None)
@given(sides, tiles)
def test_steps_and_streamed_bytes_are_those_of_every_tile_counted(
    product: GemmShape, tile: GemmShape
) -> None:
    plan = TilePlan(*product, TileSize(*tile))
    counted = [step.size for step in plan]
    assert steps(product, tile) == len(counted)
    expected = (
        sum(size.m * size.k for size in counted) * 2,
        sum(size.k * size.n for size in counted) * 2,
    )
    assert streamed_bytes(product, tile, 2) == expected


@settings(deadline=None)
@given(sides, tiles)
def test_utilisation_is_at_most_1_and_is_1_for_whole_tiles(
    product: GemmShape, tile: GemmShape
) -> None:
    assert 0 < padding_utilisation(product, tile) <= 1
    whole = GemmShape(
        *(-(-length // side) * side for length, side in zip(product, tile, strict=True))
    )
    assert padding_utilisation(whole, tile) == 1
    assert padding_utilisation(product, tile) == Fraction(product.macs, whole.macs)


def test_one_element_more_than_a_tile_wastes_nearly_half() -> None:
    assert padding_utilisation(GemmShape(33, 64, 32), TILE) == Fraction(33, 64)


def pipeline_ps(fetch: int, compute: int, store: int, depth: int, outputs: int) -> int:
    """Two register sets and two accumulators, step by step."""
    fetched, computed, stored = [0], [0, 0], [0, 0]
    for step in range(depth * outputs):
        fetched.append(max(fetched[-1], computed[-2]) + fetch)
        free = stored[-2] if step % depth == 0 else 0
        computed.append(max(fetched[-1], computed[-1], free) + compute)
        if step % depth == depth - 1:
            stored.append(max(computed[-1], stored[-1]) + store)
    return stored[-1]


@settings(deadline=None)
@given(
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 400),
    st.integers(1, 5),
    st.integers(1, 6),
)
def test_a_staged_product_takes_what_the_recursion_of_its_pipeline_gives(
    fetch: int, compute: int, result_itemsize: int, depth: int, outputs: int
) -> None:
    # A step multiplies a row of 60 elements by a column in `compute` ns; it fetches 120 elements of
    # one byte in `fetch` ns.
    numbers = GemmNumbers(
        GemmShape(1, 60, 1),
        1,
        Fraction(60, compute),
        Fraction(120, fetch),
        Fraction(1),
        Fraction(1),
    )
    services = numbers.fetch_ps(1), numbers.tile_ps(), numbers.store_ps(result_itemsize)
    assert services[:2] == (fetch * 1000, compute * 1000)
    assert numbers.staged_ps(GemmShape(outputs, 60 * depth, 1), 1, result_itemsize) == pipeline_ps(
        *services, depth, outputs
    )


def test_an_array_counts_the_cycle_that_scale_sim_does_not() -> None:
    rows = reference()
    assert len(rows) == 6
    for row in rows:
        product = GemmShape(int(row["M"]), int(row["K"]), int(row["N"]))
        cycles = systolic_cycles(product, int(row["rows"]), int(row["cols"]))
        assert cycles == int(row["scalesim_total_cycles"]) + 1


def test_the_last_cell_of_an_array_ends_when_all_its_operands_have_passed() -> None:
    # Operand d passes cell (r, c) in cycle d + r + c, counted from 0.
    rows, cols, depth = 5, 3, 11
    last = max(d + r + c for d in range(depth) for r in range(rows) for c in range(cols))
    assert systolic_cycles(GemmShape(rows, depth, cols), rows, cols) == last + 1
