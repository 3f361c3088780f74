"""The bounds of a product against numbers computed by hand, and the points of the study."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernbench.studies.catalogue import GemmFlags
from kernbench.studies.milestone_1h_gemm.rows import plan_points
from kernbench.studies.milestone_1h_gemm.theory import (
    GemmBounds,
    GemmHardware,
    ProductShape,
    Staging,
    bounds,
    padding_utilisation,
    parse_shapes,
)
from kernbench.studies.parameter_study import TopologyText
from runtime.core.errors import UsageError
from tests.support.topologies import default_text, variant, variant_text

CUBE = ProductShape(512, 512, 512)
RAGGED = ProductShape(200, 200, 200)
HARDWARE = GemmHardware.of(variant())
DEFAULT = TopologyText("topology.yaml", default_text())


def bound(shape: ProductShape, staging: Staging, **changes: object) -> GemmBounds:
    return bounds(GemmHardware.of(variant(**changes)), shape, staging)


def test_the_hardware_is_read_from_the_topology_file():
    assert HARDWARE.tile == (32, 64, 32)
    # 2 x 4096 operations a cycle of 1 ns; 8 channels x 32 GB/s x 0.8.
    assert (HARDWARE.peak_tflops, HARDWARE.memory_gbs) == (8.192, 204.8)


@pytest.mark.parametrize(
    ("key", "gbs", "nbytes", "through_gbs"),
    [
        (
            "xbar__to_hbm_bw_gbs",
            100.0,
            16_777_216,
            100,
        ),  # a link for each direction: writes have their own
        ("pe__tcm__bw_gbs", 90.0, 17_301_504, 90),
        ("hbm__pc_bw_gbs", 10.0, 17_301_504, 64),
    ],
)
def test_the_least_bandwidth_on_the_path_to_memory_binds(
    key: str, gbs: float, nbytes: int, through_gbs: int
):
    # A and B are read 16 times, 16 MiB in all, and 512 KiB are written.
    assert bound(CUBE, Staging.REF_REF, **{key: gbs}).stream_ps == nbytes * 1000 // through_gbs


def test_streamed_operands_are_read_again_in_every_step():
    # 16 x 8 x 16 steps of 16 ns; A 16 times, B 16 times and the result once, 2 bytes each, at
    # 204.8 GB/s; each step fetches 8 KiB at 512 GB/s, each of 256 output tiles stores 2 KiB.
    assert bound(CUBE, Staging.REF_REF) == GemmBounds(
        compute_ps=2048 * 16_000,
        memory_ps=84_480_000,
        load_ps=0,
        stream_ps=84_480_000,
        fetch_ps=2048 * 16_000,
        store_ps=256 * 4_000,
        bound_ps=84_480_000,
        binds="memory",
    )


def test_a_loaded_operand_is_read_once_and_before_the_product():
    # A: 512 KiB at 204.8 GB/s are 2,560 ns; B 16 times and the result: 43,520 ns.
    half = bound(CUBE, Staging.LOAD_REF)
    assert (half.load_ps, half.stream_ps, half.bound_ps) == (2_560_000, 43_520_000, 46_080_000)
    # Both: 5,120 ns, the result another 2,560 ns; the engine binds.
    both = bound(CUBE, Staging.LOAD_LOAD)
    assert (both.load_ps, both.memory_ps, both.bound_ps) == (
        5_120_000,
        7_680_000,
        5_120_000 + 32_768_000,
    )
    assert both.binds == "compute"


def test_a_tile_that_is_not_full_takes_as_long_and_moves_less():
    # 7 x 4 x 7 steps of 16 ns; A and B 7 times each, 80,000 bytes, and the result.
    ragged = bound(RAGGED, Staging.REF_REF)
    assert ragged.compute_ps == 196 * 16_000
    assert ragged.stream_ps == 15 * 80_000 * 1000 * 10 // 2048


def test_a_systolic_array_takes_the_depth_and_the_diagonal_for_each_of_its_outputs():
    # ceil(M/R) ceil(N/C) (K + R + C - 2) cycles, with R = C = 32.
    assert (
        bound(ProductShape(64, 64, 96), Staging.LOAD_LOAD, pe__gemm__model="systolic_os").compute_ps
        == 2 * 3 * (64 + 62) * 1000
    )
    # An array of half the tile goes over it four times.
    small = {"pe__gemm__model": "systolic_os", "pe__gemm__rows": 16, "pe__gemm__cols": 16}
    assert (
        bound(ProductShape(32, 64, 32), Staging.LOAD_LOAD, **small).compute_ps
        == 4 * (64 + 30) * 1000
    )


def test_padding_is_the_idle_part_of_a_tile_or_of_an_array():
    # 200^3 of 7 x 4 x 7 tiles of 32 x 64 x 32; an array is not busy for longer at a depth
    # that is no multiple of 64.
    plan = RAGGED.plan(HARDWARE.tile)
    assert padding_utilisation(HARDWARE, plan) == 200**3 / (196 * 32 * 64 * 32)
    array = GemmHardware.of(variant(pe__gemm__model="systolic_os"))
    assert padding_utilisation(array, plan) == (200 / 224) ** 2
    deep = ProductShape(32, 65, 32)
    time_ps = bounds(array, deep, Staging.LOAD_LOAD).compute_ps
    assert (
        array.utilisation(32 * 65 * 32, time_ps)
        == 65 / (65 + 62)
        <= padding_utilisation(array, deep.plan(array.tile))
        == 1
    )


@pytest.mark.parametrize(
    ("changes", "binds"),
    [
        ({}, "compute"),
        ({"pe__fetch_store__bw_gbs": 256.0}, "fetch"),
        ({"hbm__pc_bw_gbs": 0.1}, "memory"),
    ],
)
def test_the_slowest_engine_binds(changes: dict[str, object], binds: str):
    assert bound(CUBE, Staging.LOAD_LOAD, **changes).binds == binds


def test_a_clock_twice_as_fast_halves_the_time_of_the_engine():
    assert bound(CUBE, Staging.REF_REF, pe__gemm__clock_ghz=2.0).compute_ps == 2048 * 8_000


@given(shape=st.builds(ProductShape, *[st.integers(1, 300)] * 3), staging=st.sampled_from(Staging))
def test_no_bound_is_below_the_two_of_the_roofline(shape: ProductShape, staging: Staging):
    """2 M N K operations at the peak; operands and result once at the memory bandwidth."""
    theory = bounds(HARDWARE, shape, staging)
    m, k, n = shape
    assert theory.bound_ps >= 2 * m * n * k / HARDWARE.peak_tflops - 1
    assert theory.bound_ps >= (m * k + k * n + m * n) * 2 / HARDWARE.memory_gbs * 1000 - 1


def test_at_its_compute_bound_an_engine_of_full_tiles_is_at_its_peak():
    assert HARDWARE.utilisation(512**3, bound(CUBE, Staging.REF_REF).compute_ps) == 1


def test_the_default_shapes_are_eight_and_two_of_them_are_under_one_tile():
    shapes = parse_shapes(GemmFlags().shapes)
    assert len(shapes) == 8
    assert [shape for shape in shapes if shape.under(HARDWARE.tile)] == [(16, 32, 16), (32, 32, 32)]
    assert CUBE in shapes
    assert CUBE.plan(HARDWARE.tile).tiles == 2048


def test_every_shape_is_planned_in_every_staging():
    points = plan_points(DEFAULT, parse_shapes(GemmFlags().shapes))
    assert [(point.shape, point.staging) for point in points] == [
        (shape, staging) for shape in parse_shapes(GemmFlags().shapes) for staging in Staging
    ]


def test_the_study_uses_one_sip_of_any_topology():
    torus = variant_text(
        system__sips__count=4,
        system__sips__topology="torus_2d",
        system__sips__w=2,
        system__sips__h=2,
    )
    assert "count: 1" in plan_points(TopologyText("torus.yaml", torus), [CUBE])[0].topology


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8x8", "expected MxKxN with sides from 1 to 999999, got '8x8'"),
        ("8x8x8,", "got ''"),
        ("8x0x8", "got '8x0x8'"),
        ("8x8x8, 8x8x8", "8x8x8 is named twice"),
    ],
)
def test_an_invalid_shape_is_refused(text: str, problem: str):
    with pytest.raises(UsageError, match=f"^--shapes: .*{problem}"):
        parse_shapes(text)


def test_operands_that_do_not_fit_into_scratch_are_refused_before_anything_is_simulated():
    with pytest.raises(
        UsageError, match=r"513x512x512 load_load loads 1,049,600 bytes .* is 1,048,576 bytes"
    ):
        plan_points(DEFAULT, [CUBE, ProductShape(513, 512, 512)])
    larger = TopologyText("larger.yaml", variant_text(pe__tcm__kernel_scratch_mb=2))
    assert len(plan_points(larger, [ProductShape(513, 512, 512)])) == 3
