"""Matrix products on a PE against closed forms: service times, waits between engines."""

from itertools import pairwise
from math import ceil, prod
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runtime.core.dtypes import bfloat16, float16, float32, int8, int32
from runtime.language.gemm import checked_gemm, evaluate
from runtime.language.value import Value
from runtime.model.tiles import TilePlan
from runtime.model.topology import Topology
from tests.support.products import Measured, Product, measure, operands, span_ps

pytestmark = pytest.mark.fidelity

HBM_GBS = 204.8
"""8 pseudo channels of 32 GB/s at an efficiency of 0.8."""
PEAK_MACS_PER_NS = 4096
FEW = settings(max_examples=12, deadline=None)

PRODUCTS = st.builds(
    Product,
    st.integers(1, 100),
    st.integers(1, 150),
    st.integers(1, 100),
    dtype=st.sampled_from([float16, bfloat16, float32, int8]),
    stage_a=st.booleans(),
    stage_b=st.booleans(),
    stage_result=st.booleans(),
    blocked=st.booleans(),
    acc=st.booleans(),
    result=st.none(),
    bias=st.none(),
    activation=st.none(),
)


def port_ps(nbytes: int, topology: Topology) -> int:
    return ceil(nbytes * 1000 / topology.pe.fetch_store.bw_gbs)


def stages_ps(product: Product, topology: Topology) -> tuple[int, int, int]:
    """Fetch of a step, the step, store of an output tile: of full tiles, or of the only one."""
    m, k, n = (
        min(side, full)
        for side, full in zip((product.m, product.k, product.n), topology.tile, strict=True)
    )
    fetch = port_ps(m * k * product.dtype.itemsize, topology) + port_ps(
        k * n * product.dtype.itemsize, topology
    )
    gemm = topology.pe.gemm
    compute = ceil(ceil(prod(topology.tile) / gemm.macs_per_cycle) * 1000 / gemm.clock_ghz)
    return fetch, compute, port_ps(m * n * product.out_dtype.itemsize, topology)


def staged_ps(product: Product, topology: Topology) -> int:
    """A pipeline with two buffers between stages: the slowest sets the pace."""
    fetch, compute, store = stages_ps(product, topology)
    plan = product.plan(topology)
    depth = plan.tiles // plan.output_tiles
    output_tile = depth * max(fetch, compute)
    others = (plan.output_tiles - 1) * max(output_tile, store)
    return min(fetch, compute) + output_tile + others + store


@pytest.mark.parametrize(
    ("product", "changes"),
    [
        (Product(128, 128, 128), {}),
        (Product(96, 192, 64, dtype=float32), {}),
        (Product(64, 256, 128, dtype=int8), {"pe__gemm__macs_per_cycle": 1000}),
        (Product(64, 128, 96), {"pe__fetch_store__bw_gbs": 100}),
        (Product(128, 4, 128), {"pe__fetch_store__bw_gbs": 64}),
        (Product(64, 64, 64), {"pe__gemm__clock_ghz": 0.7}),
        (Product(64, 64, 64), {"pe__tile": {"m": 16, "k": 16, "n": 64}}),
    ],
    ids=[
        "balanced",
        "wide elements",
        "slow engine",
        "narrow port",
        "store bound",
        "odd clock",
        "other tile",
    ],
)
def test_a_staged_product_takes_fill_steps_and_drain(
    product: Product, changes: dict[str, Any]
) -> None:
    measured = measure(product.staged(), **changes)
    assert measured.span_ps == staged_ps(product.staged(), measured.topology)


def test_an_epilogue_lies_between_the_last_step_of_a_tile_and_its_store() -> None:
    product = Product(32, 128, 32, bias=float16, activation="gelu").staged()
    measured = measure(product)
    fetch, compute, store = stages_ps(product, measured.topology)
    bias = port_ps(32 * 2, measured.topology)
    # The vector engine: its fill and 1024 / 128 vectors, for the bias, an addition of a cycle for
    # each vector, and for the activation.
    math = measured.topology.pe.math
    cycles = sum(math.pipeline_cycles + 8 * each for each in (1, math.cycles.gelu))
    assert measured.span_ps == 2 * fetch + bias + compute + cycles * 1000 + store


def test_a_sum_that_starts_from_a_matrix_fetches_it_first() -> None:
    product = Product(32, 128, 32).staged()
    plain, started = measure(product), measure(product._replace(acc=True))
    assert started.span_ps - plain.span_ps == port_ps(32 * 32 * 4, plain.topology)


def test_the_steps_along_k_add_to_one_accumulator_which_is_stored_once() -> None:
    measured = measure(Product(64, 256, 64).staged())
    steps, stores = measured.of("pe_gemm"), measured.of("pe_fetch_store", "store")
    depth = 256 // 64
    assert [len(step.inputs) for step in steps] == [2, *[3] * (depth - 1)] * 4
    accumulators = [step.address for step in steps]
    assert accumulators == [
        each for pair in zip(accumulators[::depth], strict=True) for each in pair * depth
    ]
    assert [source.address for store in stores for source in operands(store)] == accumulators[
        ::depth
    ]
    assert len(set(accumulators)) == 2


@pytest.mark.parametrize(
    "shape", [(32, 64, 32), (33, 64, 32), (32, 65, 33), (1, 1, 1), (100, 200, 50)]
)
def test_a_partial_tile_takes_as_long_as_a_full_tile(shape: tuple[int, int, int]) -> None:
    measured = measure(Product(*shape).staged())
    counters, plan = measured.counters, Product(*shape).plan(measured.topology)
    assert (
        counters["gemm_tiles"]
        == plan.tiles
        == prod(ceil(side / full) for side, full in zip(shape, (32, 64, 32), strict=True))
    )
    assert counters["gemm_busy_ps"] == plan.tiles * 16_000
    assert counters["gemm_macs"] == prod(shape)
    assert (
        counters["gemm_macs"] * 1000 / (counters["gemm_busy_ps"] * PEAK_MACS_PER_NS)
        == plan.padding_utilisation
    )


def bounds_ps(product: Product, plan: TilePlan) -> tuple[float, float]:
    """2 MNK / peak, and all bytes to and from memory over its bandwidth."""
    of_a, of_b = product.operand_bytes(plan)
    a, b = (
        product.m * product.k * product.dtype.itemsize,
        product.k * product.n * product.dtype.itemsize,
    )
    nbytes = (
        (a if product.stage_a else of_a) + (b if product.stage_b else of_b) + product.result_bytes
    )
    return product.m * product.k * product.n / PEAK_MACS_PER_NS * 1000, nbytes / HBM_GBS * 1000


@pytest.mark.slow
@FEW
@given(PRODUCTS)
def test_no_product_is_faster_than_the_peak_or_the_memory(product: Product) -> None:
    measured = measure(product)
    assert measured.kernel_ps >= max(bounds_ps(product, product.plan(measured.topology)))
    assert measured.counters["gemm_busy_ps"] <= measured.kernel_ps


@pytest.mark.slow
@pytest.mark.parametrize(
    ("macs_per_cycle", "binds"), [(4096, 1), (512, 0)], ids=["memory bound", "compute bound"]
)
def test_a_product_streamed_from_memory_reaches_the_larger_bound(
    macs_per_cycle: int, binds: int
) -> None:
    product = Product(256, 256, 256)
    # The buffers of the file hide the latency of its HBM.
    measured = measure(product, pe__gemm__macs_per_cycle=macs_per_cycle)
    compute, memory = bounds_ps(product, product.plan(measured.topology))
    bounds = [compute * PEAK_MACS_PER_NS / macs_per_cycle, memory]
    assert bounds[binds] > 2 * bounds[1 - binds]
    assert bounds[binds] <= measured.kernel_ps <= 1.02 * bounds[binds]


@pytest.mark.slow
@FEW
@given(
    st.integers(1, 100),
    st.integers(1, 200),
    st.integers(1, 100),
    st.sampled_from([(16, 16), (32, 8), (8, 32)]),
)
def test_a_systolic_array_takes_depth_and_skew_for_each_of_its_outputs(
    m: int, k: int, n: int, array: tuple[int, int]
) -> None:
    rows, cols = array
    measured = measure(
        Product(m, k, n).staged(),
        pe__tile={"m": rows, "k": 32, "n": cols},
        pe__gemm={
            "model": "systolic_os",
            "clock_ghz": 1.0,
            "macs_per_cycle": 1,
            "rows": rows,
            "cols": cols,
        },
    )
    # Samajdar et al., ISPASS 2020: ceil(M/R) ceil(N/C) folds of K + R + C - 2 cycles.
    cycles = ceil(m / rows) * ceil(n / cols) * (k + rows + cols - 2)
    assert measured.counters["gemm_busy_ps"] == cycles * 1000
    assert m * k * n <= cycles * rows * cols


def test_an_array_smaller_than_the_tile_takes_several_passes() -> None:
    gemm = {"model": "systolic_os", "clock_ghz": 2.0, "macs_per_cycle": 1, "rows": 16, "cols": 8}
    measured = measure(Product(40, 100, 32).staged(), pe__gemm=gemm)
    # Tiles of 32 + 8 rows take 2 + 1 passes of the array, 32 columns take 4. Each pass takes the
    # depth and the skew, at 2 GHz.
    assert measured.counters["gemm_busy_ps"] == (2 + 1) * 4 * (100 + 16 + 8 - 2) * 500


def share(measured: Measured, reason: str) -> float:
    return measured.stalls[reason] / sum(measured.stalls.values())


def test_a_product_streamed_from_memory_waits_for_the_dma() -> None:
    assert share(measure(Product(128, 128, 128)), "dma") > 0.95


def test_a_narrow_fetch_port_is_what_a_staged_product_waits_for() -> None:
    measured = measure(Product(128, 128, 128).staged(), pe__fetch_store__bw_gbs=128)
    assert share(measured, "fetch") == 1


def test_a_narrow_store_port_is_what_a_shallow_product_waits_for() -> None:
    measured = measure(Product(256, 4, 256).staged(), pe__fetch_store__bw_gbs=64)
    assert share(measured, "store") > 0.95


def test_with_a_memory_slow_at_writes_a_product_waits_for_the_store() -> None:
    product = Product(256, 4, 256, stage_a=True, stage_b=True)
    assert share(measure(product, hbm__pc_bw_gbs=2), "store") > 0.9


def test_steps_and_stalls_of_the_engine_fill_the_time_of_a_product() -> None:
    measured = measure(Product(96, 192, 96))
    steps = measured.of("pe_gemm")
    between_ps = sum(later.start_ps - former.end_ps for former, later in pairwise(steps))
    before_ps = steps[0].start_ps - measured.of("pe_dma", "load")[0].start_ps
    assert sum(measured.stalls.values()) == before_ps + between_ps


def test_staged_products_in_flight_share_one_fill_and_one_drain() -> None:
    product = Product(64, 128, 64).staged()
    one, three = measure(product), measure(product, product, product)
    assert three.span_ps - one.span_ps == 2 * product.plan(one.topology).tiles * 16_000


def test_streamed_products_in_flight_overlap_at_their_ends() -> None:
    product = Product(64, 128, 64)
    one, two = (
        span_ps([each for each in run.records if each.inputs and each.engine.startswith("pe_")])
        for run in (measure(product), measure(product, product))
    )
    # While the first product ends (16 ns fetch, 16 ns last step, 4 ns store), the memory serves the
    # second one.
    assert two < 2 * one - 16_000 - 16_000 - 4_000


def exact(product: Product, topology: Topology) -> np.ndarray:
    """The result in float64."""
    arrays = {name: array.astype(np.float64) for name, array in product.arrays().items()}
    result = arrays["a"] @ arrays["b"]
    result += arrays["acc"] if product.acc else 0
    result += arrays["bias"] if product.bias else 0
    return np.maximum(result, 0) if product.activation else result


def by_the_tile(product: Product, topology: Topology) -> np.ndarray:
    """The result of the kernel language without a chip."""
    arrays = product.arrays()
    values = {
        "a": Value((product.m, product.k), product.dtype, arrays["a"]),
        "b": Value((product.k, product.n), product.dtype, arrays["b"]),
    }
    acc = Value((product.m, product.n), int32 if product.dtype == int8 else float32, arrays["acc"])
    bias = Value((product.n,), product.bias or float32, arrays["bias"])
    gemm = checked_gemm(
        values["a"],
        values["b"],
        acc=acc if product.acc else None,
        bias=bias if product.bias else None,
        activation=product.activation,
        out_dtype=product.out_dtype,
    )
    return evaluate(gemm, arrays["a"], arrays["b"], topology.tile)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(PRODUCTS, st.sampled_from([None, float16, float32]), st.sampled_from([None, "relu"]))
def test_the_numbers_are_those_of_float64_rounded_by_the_rules(
    product: Product, bias: Any, activation: str | None
) -> None:
    assume(bias is None or product.dtype != int8)
    product = product._replace(bias=bias, activation=activation)
    measured = measure(product, data=True)
    result, expected = measured.results[0], exact(product, measured.topology)
    assert result.tobytes() == by_the_tile(product, measured.topology).tobytes()
    tolerance = {float16: 2**-10, bfloat16: 2**-7, float32: 2**-20, int32: 0}[product.out_dtype]
    np.testing.assert_allclose(
        result.astype(np.float64), expected, rtol=tolerance, atol=tolerance * 4
    )


@pytest.mark.slow
@FEW
@given(PRODUCTS)
def test_a_run_without_data_takes_the_same_times(product: Product) -> None:
    with_data, without = measure(product, data=True), measure(product)
    times = [
        [(each.engine, each.name, each.start_ps, each.end_ps) for each in run.records]
        for run in (with_data, without)
    ]
    assert times[0] == times[1]
