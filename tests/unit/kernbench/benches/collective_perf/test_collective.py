"""Names, sizes and bandwidths of nccl-tests, and the arithmetic of the data check."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from kernbench.benches.collective_perf.collective import (
    COLLECTIVES,
    DTYPES,
    OPS,
    PerfCase,
    PerfParameters,
    perf_cases,
    rounded_sizes,
)
from kernbench.benches.collective_perf.values import BLOCK, combined, inputs, wrong_elements
from runtime.core.dtypes import bfloat16, float16, float32, float64, int8, int32
from tests.support.perf_parameters import PARAMETERS


def case(
    name: str = "all_reduce",
    ranks: int = 4,
    count: int = 64,
    dtype: str = "float",
    op: str = "sum",
    root: int = 0,
) -> PerfCase:
    return PerfCase(
        collective=COLLECTIVES[name], ranks=ranks, count=count, dtype_name=dtype, op=op, root=root
    )


def right_result(of: PerfCase, rank: int) -> np.ndarray:
    """The result of a rank, computed in numpy; with integers it is exact."""
    given = [inputs(of, 0, each) for each in range(of.ranks)]
    total = np.stack(given).sum(axis=0, dtype=given[0].dtype)
    results = {
        "all_reduce": total,
        "reduce": total if rank == of.root else given[rank],
        "broadcast": given[of.root],
        "all_gather": np.concatenate(given),
        "reduce_scatter": total[rank : rank + 1],
        "alltoall": np.stack([rows[rank % len(rows)] for rows in given]),
        "sendrecv": given[rank - 1],
    }
    return results[of.collective.name]


@pytest.mark.parametrize("ranks", [1, 2, 4, 9])
def test_the_factors_of_the_bus_bandwidth_are_those_of_nccl_tests(ranks: int):
    # doc/PERFORMANCE.md of nccl-tests, "Summary".
    ring = Fraction(ranks - 1, ranks)
    factors = {
        "all_reduce": 2 * ring,
        "all_gather": ring,
        "reduce_scatter": ring,
        "alltoall": ring,
        "broadcast": 1,
        "reduce": 1,
        "sendrecv": 1,
    }
    assert set(factors) == set(COLLECTIVES)
    for name, factor in factors.items():
        assert COLLECTIVES[name].busbw(ranks) == pytest.approx(float(factor))


def test_bandwidth_is_the_larger_buffer_over_the_time():
    gathered = case("all_gather", ranks=4, count=256)
    assert gathered.size_bytes == 4 * 256 * 4
    assert gathered.algbw_gbs(1_000_000) == pytest.approx(4096 / 1000)
    assert gathered.busbw_gbs(1_000_000) == pytest.approx(4096 / 1000 * 3 / 4)
    assert case(ranks=4, count=256).size_bytes == 256 * 4
    assert case().algbw_gbs(0) == 0


def sizes(parameters: PerfParameters, ranks: int = 4) -> list[int]:
    return [each.size_bytes for each in perf_cases(parameters, ranks)]


def test_sizes_are_multiplied_or_added_up_to_the_largest():
    assert sizes(PARAMETERS) == [8, 16, 32, 64]
    assert sizes(replace(PARAMETERS, max_bytes=63)) == [8, 16, 32]
    assert sizes(replace(PARAMETERS, step_factor=1, step_bytes=24)) == [8, 32, 56]


def test_a_size_is_cut_to_whole_elements_of_every_rank_and_left_out_without_one():
    gather = replace(
        PARAMETERS, collective="all_gather", min_bytes=4, max_bytes=20, step_factor=1, step_bytes=4
    )
    assert [(each.count, each.size_bytes) for each in perf_cases(gather, 3)] == [
        (1, 6),
        (2, 12),
        (2, 12),
        (3, 18),
    ]
    assert sizes(replace(PARAMETERS, min_bytes=1, max_bytes=1)) == []


def test_all_stands_for_every_type_reduction_and_root_that_there_is():
    everything = replace(
        PARAMETERS, collective="reduce", max_bytes=8, op="all", dtype="all", root=-1
    )
    rows = [(each.dtype_name, each.op, each.root) for each in perf_cases(everything, 2)]
    averages = [(dtype, "avg") for dtype in ("int8", "int32")]
    assert rows == [
        (dtype, op, root)
        for dtype in DTYPES
        for op in OPS
        if (dtype, op) not in averages
        for root in (0, 1)
    ]
    [row] = perf_cases(replace(everything, collective="alltoall", dtype="half", max_bytes=8), 2)
    assert (row.op, row.root) == ("none", -1)


@pytest.mark.parametrize(
    ("count", "spread"),
    [
        (64, ((0, 1, 7, 9), 8)),
        (8, ((7,), 8)),
        (4, ((7,), 4)),
        (12, ((7,), 4)),
        (1, ((7,), 1)),
        (16, ((7, 9), 8)),
    ],
)
def test_a_buffer_lies_on_as_many_pes_as_divide_it_in_the_first_cubes(
    count: int, spread: tuple[tuple[int, ...], int]
):
    assert case(count=count).spread(cubes=(7, 9, 1, 0), pes=8) == spread


@pytest.mark.parametrize("name", list(COLLECTIVES))
def test_the_right_result_has_no_wrong_element_and_every_change_is_counted(name: str):
    of = case(name, ranks=3, count=40, dtype="int32", root=1)
    for rank in range(3):
        result = right_result(of, rank).copy()
        assert wrong_elements(of, 0, rank, result) == 0
        assert wrong_elements(of, 1, rank, result) > 0
        result[0, 7] += 1
        result[-1, 39] -= 1
        assert wrong_elements(of, 0, rank, result) == 2


def test_a_buffer_of_several_blocks_is_checked_to_its_end():
    of = case("broadcast", ranks=2, count=BLOCK + 5, dtype="int8")
    result = right_result(of, 1).copy()
    result[0, [0, BLOCK - 1, BLOCK, BLOCK + 4]] += 1
    assert wrong_elements(of, 0, 1, result) == 4


@pytest.mark.parametrize("dtype", [float16, bfloat16, float32, float64])
@pytest.mark.parametrize("op", ["sum", "prod", "avg"])
def test_a_sum_in_any_order_is_right_and_one_without_a_contribution_is_not(dtype, op: str):
    name = {"f16": "half", "bf16": "bfloat16", "f32": "float", "f64": "float"}[dtype.name]
    of = case(ranks=8, count=512, dtype=name, op=op)
    given = np.stack([inputs(of, 0, rank)[0] for rank in range(8)]).astype(dtype.numpy)
    right, tolerance = combined(op, dtype, given)
    operation = np.multiply if op == "prod" else np.add
    wider = np.result_type(np.float32, dtype.numpy)

    def folded(order: list[int]) -> np.ndarray:
        value = given[order[0]]
        for index in order[1:]:
            value = operation(value, given[index]).astype(dtype.numpy)
        return (value.astype(wider) / 8).astype(dtype.numpy) if op == "avg" else value

    for seed in range(4):
        order = np.random.default_rng(seed).permutation(8).tolist()
        assert (np.abs(folded(order).astype(np.float64) - right) <= tolerance).all()
    # A contribution may be smaller than what rounding to bfloat16 changes, but few of 512 are.
    assert (
        np.count_nonzero(np.abs(folded(list(range(7))).astype(np.float64) - right) > tolerance)
        > 400
    )


def test_the_larger_and_smaller_and_all_of_integers_are_exact():
    given = np.array([[1.5, -2.0], [3.25, -7.0]], np.float16)
    assert [combined(op, float16, given)[0].tolist() for op in ("max", "min")] == [
        [3.25, -2.0],
        [1.5, -7.0],
    ]
    assert combined("max", float16, given)[1] == 0
    wrapped, tolerance = combined("sum", int8, np.array([[100, -128], [100, -1]], np.int8))
    assert (wrapped.tolist(), wrapped.dtype, tolerance) == ([-56, 127], np.int8, 0)
    assert combined("prod", int32, np.array([[1 << 20], [1 << 15]], np.int32))[0].tolist() == [0]


def test_a_result_that_is_no_number_is_wrong():
    of = case(ranks=2, count=4, dtype="half")
    assert wrong_elements(of, 0, 0, np.full((1, 4), np.nan, np.float16)) == 4
    assert wrong_elements(of, 0, 0, np.full((1, 4), np.inf, np.float16)) == 4


@pytest.mark.parametrize("ranks", [2, 64])
def test_the_product_of_many_ranks_stays_in_the_range_of_the_narrowest_type(ranks: int):
    of = case(ranks=ranks, count=256, dtype="half", op="prod")
    product = np.prod([inputs(of, 0, rank)[0].astype(np.float64) for rank in range(ranks)], axis=0)
    limits = np.finfo(np.float16)
    assert (np.abs(product) < float(limits.max)).all()
    assert (np.abs(product) > 0).all()


@pytest.mark.parametrize(
    ("name", "dtype", "rounded"),
    [
        ("all_reduce", "float", {3: 0, 6: 4}),
        ("all_reduce", "int8", {}),
        # The elements of 4 bytes of 4 ranks are 16 bytes.
        ("all_gather", "float", {3: 0, 6: 0, 12: 0, 24: 16}),
        ("all_reduce", "all", {3: 0, 6: 4}),
    ],
)
def test_sizes_that_are_no_whole_elements_are_rounded_down(
    name: str, dtype: str, rounded: dict[int, int]
):
    parameters = replace(
        PARAMETERS, collective=name, min_bytes=3, max_bytes=24, step_factor=2, dtype=dtype
    )
    assert rounded_sizes(parameters, 4) == rounded
    if dtype != "all":
        sizes = {size for size in (3, 6, 12, 24) if size not in rounded} | {*rounded.values()} - {0}
        assert {each.size_bytes for each in perf_cases(parameters, 4)} == sizes
