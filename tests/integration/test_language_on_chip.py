"""A kernel gives the same bits and the same refusals in the mock runtime and on a chip."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime import DPPolicy, mock, tl, torch
from runtime.core.dtypes import DType
from runtime.core.errors import KernelError
from runtime.language.value import Pointer
from tests.support.kernels import FLOATS, NARROW
from tests.support.topologies import variant_text
from tests.support.world import simulate

ONE_PE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW"],
)
SHAPE = (37, 70)
"""More rows than a tile and a larger depth, and multiples of neither."""


def arrays(*dtypes: DType) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    return [(rng.standard_normal(SHAPE) * 9).astype(dtype.numpy) for dtype in dtypes]


def on_chip(kernel: Callable[..., object], given: list[np.ndarray]) -> list[np.ndarray]:
    def program(_rank: int) -> list[np.ndarray]:
        tensors = [torch.from_numpy(array, dp=DPPolicy(num_cubes=1, num_pes=1)) for array in given]
        torch.launch(kernel.__name__, kernel, *tensors)
        return [tensor.numpy() for tensor in tensors]

    return simulate(program, 1, topology=ONE_PE).returned[0]


def assert_same_bits(kernel: Callable[..., object], given: list[np.ndarray]) -> None:
    found = on_chip(kernel, [array.copy() for array in given])
    mock.launch(kernel, *given)
    for chip, mocked in zip(found, given, strict=True):
        np.testing.assert_array_equal(chip.view(np.uint8), mocked.view(np.uint8))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_functions_reductions_and_views(dtype: DType) -> None:
    def kernel(x: Pointer, y: Pointer) -> None:
        block = tl.load(x + 3, (20, 30), strides=(70, 1))
        lower = block[4:, 2:]
        scaled = tl.fma(lower, 0.3, tl.sin(lower)) / (1 + tl.abs(lower))
        row = tl.max(scaled, axis=0) + tl.sum(scaled, axis=0)
        outer = tl.gelu(scaled[:, :5].T)[:, None, :] * tl.silu(scaled[:16, :1])[:, 0:1].T
        tl.store(y, tl.softmax(scaled * row[None, :], axis=1))
        tl.store(y + 600, tl.sum(outer, axis=1))
        tl.store(
            y + 1000, tl.cat([tl.trans(scaled), tl.clamp(scaled, -1, 1).to(tl.int8).to(dtype)])
        )

    assert_same_bits(kernel, arrays(dtype, dtype))


@pytest.mark.parametrize("dtype", [tl.float16, tl.int64], ids=repr)
def test_gathered_rows(dtype: DType) -> None:
    def kernel(x: Pointer, y: Pointer, rows: Pointer) -> None:
        tl.store(y, tl.gather(x, tl.load(rows, 12), 70))
        first = tl.gather_async(x + 5, [2, 0, 2], (4, 9), (210, 70, 1))
        named = tl.zeros(2, tl.int32)
        second = tl.gather_async(x, tl.load_async(rows + 5, 2, out=named).wait(), 70)
        tl.store(y + 1000, first.wait())
        # The list is written over once the gather has read it.
        tl.load(rows, 2, out=named)
        tl.store(y + 1200, second.wait())
        # A list that comes while the gather is issued.
        tl.load_async(rows + 7, 2, out=named)
        tl.store(y + 1400, tl.gather(x, named, 70))

    rows = np.array([36, 0, 5, 5, 5, 20, 1, 2, 3, 4, 36, 7], np.int32)
    assert_same_bits(kernel, [*arrays(dtype, dtype), rows])


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_casts_and_sums_between_all_types(dtype: DType) -> None:
    def kernel(x: Pointer, *others: Pointer) -> None:
        block = tl.load(x, (10, 20))
        for each in others:
            tl.store(each + 5, (block * 3 - 1).to(each.dtype), strides=(70, 1))
            tl.store(each + 1000, tl.sum(block, axis=1, keep_dims=True).to(each.dtype))

    assert_same_bits(kernel, arrays(dtype, *NARROW))


@pytest.mark.parametrize("dtype", [*FLOATS, tl.int8], ids=repr)
def test_products_of_staged_and_streamed_operands(dtype: DType) -> None:
    activation = "gelu" if dtype.is_floating_point else "relu"
    out = dtype if dtype.is_floating_point else tl.int32

    def kernel(x: Pointer, y: Pointer, z: Pointer) -> None:
        a, b = tl.ref(x, (37, 70)), tl.ref(y + 2, (70, 33), (37, 1))
        bias = tl.load(y + 5, 33)
        streamed = tl.composite(
            "gemm", a, b, tl.ref(z, (37, 33), (70, 1)), bias=bias, activation=activation
        )
        acc = tl.dot(tl.load(x, (37, 70)), b)
        tl.wait(streamed)
        staged = tl.dot(a, tl.load(y + 2, (70, 33), strides=(37, 1)), acc, out)
        tl.store(z + 35, staged, strides=(70, 1))

    assert_same_bits(kernel, arrays(dtype, dtype, out))


@pytest.mark.parametrize("dtype", [*FLOATS, tl.float8e4nv, tl.float8e5], ids=repr)
def test_conditions_scans_positions_and_functions(dtype: DType) -> None:
    def kernel(x: Pointer, y: Pointer, places: Pointer) -> None:
        block = tl.load(x, (20, 30), strides=(70, 1))
        causal = tl.arange(0, 20)[:, None] >= tl.arange(0, 30)[None, :]
        kept = tl.where(causal & ~(block > 8), block, -0.5)
        powers = tl.exp2(tl.floor(kept / 4)) + tl.erf(kept) * tl.rsqrt(tl.abs(kept) + 1)
        tl.store(y, tl.cumsum(powers.mT, axis=1))
        tl.store(y + 600, tl.log2(1 + tl.abs(tl.round(kept)) ** 0.5).reshape(10, 60))
        tl.store(y + 1200, tl.ceil(kept.mT).reshape(-1))
        first = tl.argmax(kept, axis=1, keep_dims=True) == tl.arange(0, 30)[None, :]
        tl.store(places, tl.cumsum(first) - tl.argmin(kept, axis=0))

    assert_same_bits(kernel, arrays(dtype, dtype, tl.int32))


@pytest.mark.parametrize("dtype", [tl.float16, tl.int8, tl.float8e5], ids=repr)
def test_transposed_views_are_operands_of_products(dtype: DType) -> None:
    def kernel(x: Pointer, y: Pointer, z: Pointer) -> None:
        a, b = tl.load(x, (70, 37)), tl.load(y, (33, 70))
        out = tl.ref(z, (33, 37)).mT
        tl.composite("gemm", tl.ref(x, (70, 37)).mT, tl.ref(y, (33, 70)).mT, out).wait()
        tl.store(z + 1300, tl.dot(a.mT, b.mT)[:, :30].mT, strides=(37, 1))

    assert_same_bits(kernel, arrays(dtype, dtype, tl.int32 if dtype == tl.int8 else tl.float32))


def test_matrices_that_lie_transposed_are_streamed() -> None:
    def kernel(x: Pointer, y: Pointer, z: Pointer) -> None:
        a, b = tl.ref(x, (37, 70), strides=(1, 37)), tl.ref(y, (70, 33), strides=(1, 71))
        tl.composite("gemm", a, b, tl.ref(z, (37, 33), strides=(1, 40))).wait()
        tl.store(z + 1500, tl.load(x, (6, 5, 4), strides=(70, 5, 1)).to(z.dtype))

    assert_same_bits(kernel, arrays(tl.float16, tl.float16, tl.float32))


def test_blocked_matrices() -> None:
    def kernel(x: Pointer, y: Pointer, z: Pointer) -> None:
        a, b = tl.ref(x, (37, 70), blocked=True), tl.ref(y, (70, 37), blocked=True)
        tl.composite("gemm", a, b, tl.ref(z, (37, 37), blocked=True)).wait()

    assert_same_bits(kernel, arrays(tl.float16, tl.float16, tl.float32))


def beyond_scratch(x: Pointer) -> None:
    tl.load(x, 10)
    tl.zeros(1 << 20, tl.int8)


def mixed_types(x: Pointer) -> None:
    tl.load(x, 10) + tl.zeros(10, tl.float16)


def wrong_depth(x: Pointer) -> None:
    tl.dot(tl.ref(x, (3, 4)), tl.ref(x, (3, 4)))


def third_axis(x: Pointer) -> None:
    tl.program_id(2)


def no_neighbour(x: Pointer) -> None:
    tl.send("E", tl.load(x, 3))


def nobody_at_all(x: Pointer) -> None:
    tl.recv(None, 3, tl.float32)


def branch_on_data(x: Pointer) -> None:
    if tl.load(x, 1) == 1:
        tl.store(x, tl.zeros(1, tl.float32))


def loop_on_data(x: Pointer) -> None:
    while tl.load(x, 1):
        tl.store(x, tl.zeros(1, tl.float32))


def identity_of_pointers(x: Pointer) -> None:
    assert x != 0


@pytest.mark.parametrize(
    "kernel",
    [
        beyond_scratch,
        mixed_types,
        wrong_depth,
        third_axis,
        no_neighbour,
        nobody_at_all,
        branch_on_data,
        loop_on_data,
        identity_of_pointers,
    ],
)
def test_a_kernel_is_refused_with_the_same_error(kernel: Callable[..., object]) -> None:
    told: list[Any] = []
    for runtime in (mock.launch, lambda kernel, x: on_chip(kernel, [x])):
        with pytest.raises(KernelError) as raised:
            runtime(kernel, np.zeros((4, 4), np.float32))
        told.append(str(raised.value))
    assert told[0] == told[1]
