"""The benches of matrix products: their measurements, detection of errors, refusals."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernbench.benches.gemm_single_pe import STAGINGS, gemm_single_pe
from kernbench.benches.products import (
    ACTIVATIONS,
    DTYPES,
    BenchProduct,
    random_elements,
    wrong_elements,
)
from kernbench.benches.qkv_gemm import IN_FLIGHT, IN_TURN, qkv_gemm
from kernbench.benches.qkv_gemm_multi_pe import qkv_gemm_multi_pe
from runtime.core.bench_registry import BenchOutcome
from runtime.core.dtypes import DType, float16, float32, int8
from runtime.core.errors import UsageError
from tests.support.topologies import variant_text
from tests.support.world import simulate

TOPOLOGY = variant_text(
    sip__cube_mesh={"w": 2, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "SE"],
)
"""Two cubes with two PEs: tiles of (32, 64) times (64, 32), 8.192 TFLOPS, 204.8 GB/s a PE."""


def on_a_rank(program: Callable[[], Any], *, data: bool = True) -> Any:
    return simulate(lambda rank: program(), 1, topology=TOPOLOGY, data=data).returned[0]


def outcome(bench: Callable[..., BenchOutcome], *, data: bool = True, **flags: Any) -> BenchOutcome:
    return on_a_rank(lambda: bench(0, **flags), data=data)


def row_of(bench: Callable[..., BenchOutcome], **flags: Any) -> dict[str, Any]:
    """The first row by the names of its columns, and `time_ps`."""
    table = outcome(bench, **flags).table
    assert table is not None
    row = table.rows[0]
    names = [column.name for column in (*table.labels, *table.values)]
    return dict(zip(names, (*row.labels, *row.values), strict=True)) | {"time_ps": row.time_ps}


SHAPE = {"m": 40, "n": 50, "k": 70}


@pytest.mark.parametrize("layout", ["blocked", "row_major"])
@pytest.mark.parametrize("staging", STAGINGS)
def test_a_product_that_no_tile_divides_is_right_however_it_is_staged_and_laid_out(
    staging: str, layout: str
):
    found = outcome(
        gemm_single_pe, **SHAPE, staging=staging, layout=layout, bias=True, activation="gelu"
    )
    assert (found.ok, found.wrong) == (1, 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_is_right_in_every_type(dtype: str):
    found = outcome(gemm_single_pe, **SHAPE, dtype=dtype, bias=True, activation="relu")
    assert (found.label, found.ok, found.wrong, found.unchecked) == ("gemm_single_pe", 1, 0, 0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_product_is_right_with_every_activation(activation: str):
    assert outcome(gemm_single_pe, **SHAPE, activation=activation).ok == 1


def test_rate_and_limit_follow_from_shape_and_hardware():
    """2 x 64^3 operations.

    Each of the 2 x 2 output tiles streams 32 x 64 of a and 64 x 32 of b; the result is 64 x 64.
    """
    row = row_of(gemm_single_pe, m=64, n=64, k=64, dtype="float32")
    operations, nbytes = 2 * 64**3, 4 * (4 * (32 * 64 + 64 * 32) + 64 * 64)
    assert row["rate"] == pytest.approx(operations / row["time_ps"])
    assert row["of peak"] == pytest.approx(100 * operations / row["time_ps"] / 8.192)
    assert (row["limit"], row["bound by"]) == (nbytes / 204.8, "memory")


def test_a_product_that_is_loaded_once_is_bound_by_the_engine():
    """Two operands of 128 x 128 and the result move once.

    The engine executes 2 x 128^3 operations at 8.192 TFLOPS.
    """
    row = row_of(gemm_single_pe, m=128, n=128, k=128, staging="load_load")
    assert row["limit"] == 2 * 128**3 / 8.192 / 1000
    assert row["bound by"] == "compute"


@pytest.mark.parametrize("staging", STAGINGS)
@pytest.mark.parametrize("shape", [{"m": 1, "n": 1, "k": 1}, SHAPE, {"m": 33, "n": 96, "k": 300}])
def test_nothing_is_faster_than_its_limit(shape: dict[str, int], staging: str):
    row = row_of(gemm_single_pe, **shape, staging=staging)
    assert row["time_ps"] >= 1000 * row["limit"]
    assert 0 < row["of peak"] <= 100


def test_tiles_in_one_piece_are_streamed_faster_than_rows_that_lie_on_one_channel():
    """The rows of b begin 2 KiB apart: those of a tile are bursts of one of the eight channels."""
    flags = {"m": 32, "n": 1024, "k": 64}
    blocks, rows = (
        row_of(gemm_single_pe, **flags, layout=layout)["time_ps"]
        for layout in ("blocked", "row_major")
    )
    assert blocks < rows / 2


def test_every_sip_multiplies_its_own_matrices():
    first, second = (random_elements((4, 4), float16, rank, 0) for rank in (0, 1))
    assert not np.array_equal(first, second)
    both = simulate(lambda rank: gemm_single_pe(rank, **SHAPE), 2, topology=TOPOLOGY)
    assert [both.returned[rank].ok for rank in (0, 1)] == [1, 1]
    assert both.digests[0] != both.digests[1]


@pytest.mark.parametrize(
    ("bench", "flags"),
    [
        (gemm_single_pe, SHAPE | {"bias": True}),
        (qkv_gemm_multi_pe, {"scale": 128, "seq": 20, "cubes": 2}),
    ],
    ids=["gemm-single-pe", "qkv-gemm-multi-pe"],
)
def test_without_data_nothing_is_checked_and_times_are_the_same(
    bench: Callable[..., BenchOutcome], flags: dict[str, Any]
):
    with_data, without = (outcome(bench, **flags, data=data) for data in (True, False))
    assert without.table == with_data.table
    assert (without.ok, without.wrong, without.unchecked) == (0, 0, with_data.ok)


@pytest.mark.parametrize("pes", [1, 2])
@pytest.mark.parametrize("layout", ["blocked", "row_major"])
def test_projections_on_a_cube_are_right(pes: int, layout: str):
    found = outcome(qkv_gemm, scale=128, seq=20, pes=pes, layout=layout)
    assert (found.label, found.ok, found.wrong) == ("qkv_gemm", 6, 0)


@pytest.mark.parametrize(("cubes", "pes"), [(0, 0), (2, 1), (1, 2)])
def test_projections_over_cubes_and_pes_are_right(cubes: int, pes: int):
    found = outcome(qkv_gemm_multi_pe, scale=256, seq=20, cubes=cubes, pes=pes)
    assert (found.label, found.ok, found.wrong) == ("qkv_gemm_multi_pe", 6, 0)


def test_projections_in_flight_take_less_time_than_in_turn():
    table = outcome(qkv_gemm, scale=256, seq=20).table
    assert table is not None
    times_ps = {row.labels[-1]: row.time_ps for row in table.rows}
    assert times_ps[IN_FLIGHT] < times_ps[IN_TURN]


def test_more_pes_project_in_less_time():
    times_ps = [
        row_of(qkv_gemm_multi_pe, scale=64, seq=20, cubes=cubes, pes=pes)["time_ps"]
        for cubes, pes in ((1, 1), (2, 2))
    ]
    assert times_ps[1] < times_ps[0] / 2


def verdict(
    product: BenchProduct, spoil: Callable[[np.ndarray], None], bias: np.ndarray | None = None
) -> int:
    """The number of wrong elements found in a product that is rounded once and then changed."""

    def program() -> int:
        a, b = (
            random_elements((product.m, product.k), product.dtype, 0),
            random_elements((product.k, product.n), product.dtype, 1),
        )
        exact = a.astype(np.float64) @ b.astype(np.float64) + (0 if bias is None else bias)
        result = ACTIVATIONS[product.activation](exact).astype(product.result.numpy)
        spoil(result)
        return wrong_elements(product, a, b, result, bias)

    return on_a_rank(program)


def products(dtype: DType) -> list[BenchProduct]:
    activations = ACTIVATIONS if dtype.is_floating_point else ("none", "relu")
    return [BenchProduct(30, 200, 20, dtype, activation=activation) for activation in activations]


@pytest.mark.parametrize(
    "product", [p for dtype in DTYPES.values() for p in products(dtype)], ids=str
)
def test_what_is_rounded_once_is_right(product: BenchProduct):
    assert verdict(product, lambda result: None) == 0


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=repr)
def test_an_error_of_two_percent_or_of_one_in_an_element_is_detected(dtype: DType):
    # In 8 bits the next element is up to a quarter away.
    share = 50 if dtype.itemsize > 1 else 2

    def spoil(result: np.ndarray) -> None:
        largest = np.unravel_index(np.argmax(np.abs(result.astype(np.float64))), result.shape)
        number = float(result[largest])
        result[largest] = number + (number / share if dtype.is_floating_point else 1)

    assert verdict(BenchProduct(30, 200, 20, dtype), spoil) == 1


@pytest.mark.parametrize(
    "product",
    [
        BenchProduct(30, 64, 20, float32),
        BenchProduct(30, 64, 20, float16),
        BenchProduct(30, 64, 20, int8),
    ],
    ids=str,
)
def test_a_product_that_lost_one_step_of_its_depth_is_wrong_nearly_everywhere(
    product: BenchProduct,
):
    def program() -> int:
        a, b = (
            random_elements((30, 64), product.dtype, 0),
            random_elements((64, 20), product.dtype, 1),
        )
        lost = a[:, 1:].astype(np.float64) @ b[1:].astype(np.float64)
        return wrong_elements(product, a, b, lost.astype(product.result.numpy))

    assert on_a_rank(program) > 0.9 * 30 * 20


def test_a_value_that_is_not_a_number_is_wrong():
    assert verdict(BenchProduct(3, 4, 2, float16), lambda result: result.fill(np.nan)) == 6


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_no_activation_is_steeper_than_the_tolerance_allows(activation: str):
    x = np.linspace(-10, 10, 200_001)
    steepest = np.abs(np.diff(ACTIVATIONS[activation](x)) / np.diff(x)).max()
    assert steepest <= 1.13


@pytest.mark.parametrize(
    ("bench", "flags", "problem"),
    [
        (gemm_single_pe, {"m": 0}, "--m 0: must be at least 1"),
        (gemm_single_pe, {"k": -3}, "--k -3: must be at least 1"),
        (
            gemm_single_pe,
            {"dtype": "float61"},
            "--dtype: 'float61' is not known; did you mean 'float16'?",
        ),
        (gemm_single_pe, {"dtype": "int32"}, "--dtype: 'int32' is not known"),
        (gemm_single_pe, {"staging": "ref_load"}, "--staging: 'ref_load' is not known"),
        (gemm_single_pe, {"layout": "tiled"}, "--layout: 'tiled' is not known"),
        (
            gemm_single_pe,
            {"activation": "glu"},
            "--activation: 'glu' is not known; did you mean 'gelu'?",
        ),
        (
            gemm_single_pe,
            {"dtype": "int8", "activation": "gelu"},
            "--activation gelu: sums of int8 are integers, which have relu only",
        ),
        (
            gemm_single_pe,
            {"staging": "load_ref", "m": 8192, "k": 128},
            (
                "the operands that are loaded have 2,097,152 bytes; the scratch of a kernel "
                "has 1,048,576"
            ),
        ),
        (qkv_gemm, {"scale": 0}, "--scale 0: must be at least 1"),
        (qkv_gemm, {"scale": 5}, "--scale 5: d_model of 12288 does not divide by it"),
        (qkv_gemm, {"seq": 0}, "--seq 0: must be at least 1"),
        (qkv_gemm, {"pes": 3}, "--pes 3: a cube has 2; 0 means all"),
        (qkv_gemm, {"pes": -1}, "--pes -1: a cube has 2; 0 means all"),
        (qkv_gemm, {"dtype": "f16"}, "--dtype: 'f16' is not known"),
        (qkv_gemm_multi_pe, {"cubes": 3}, "--cubes 3: a SIP has 2; 0 means all"),
        (
            qkv_gemm_multi_pe,
            {"scale": 4096},
            "--scale 4096: 3 columns of a weight do not divide by 4 PEs",
        ),
    ],
)
def test_a_wrong_flag_is_refused_in_one_line(
    bench: Callable[..., BenchOutcome], flags: dict[str, Any], problem: str
):
    with pytest.raises(UsageError, match=re.escape(problem)) as raised:
        outcome(bench, **flags)
    assert "\n" not in str(raised.value)
