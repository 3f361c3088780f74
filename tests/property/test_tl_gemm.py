"""Matrix products in the mock runtime against numpy in float64: tails, types, epilogues."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import mock, tl
from runtime.core.dtypes import DType
from runtime.language.gemm import accumulate, checked_gemm, evaluate
from runtime.language.mock import MockPe
from runtime.model.tiles import TileSize, blocked_offset
from tests.support.kernels import FLOATS, computed, eps, value

TILE = MockPe().gemm_tile
"""The tile of the topology file: products of random sizes end inside a tile."""

ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}
sides = st.tuples(
    st.integers(1, 2 * TILE.m + 5), st.integers(1, 2 * TILE.k + 5), st.integers(1, 2 * TILE.n + 5)
)
seeds = st.integers(0, 1000)
FEW = settings(max_examples=6, deadline=None)


def normal(rng: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    if dtype.is_floating_point:
        return rng.standard_normal(shape).astype(dtype.numpy)
    return rng.integers(-128, 128, shape).astype(dtype.numpy)


@dataclass
class Product:
    """Operands of one product, its value in float64, and the error bound of sums in float32."""

    a: np.ndarray
    b: np.ndarray

    @property
    def exact(self) -> np.ndarray:
        return self.a.astype(np.float64) @ self.b.astype(np.float64)

    @property
    def bound(self) -> np.ndarray:
        """One rounding to float32 for each tile of the depth, of at most the sum of magnitudes."""
        steps = -(-self.a.shape[1] // TILE.k)
        return (
            steps * 2**-24 * (np.abs(self.a.astype(np.float64)) @ np.abs(self.b.astype(np.float64)))
        )


def product(size: tuple[int, int, int], seed: int, dtype: DType) -> Product:
    m, k, n = size
    rng = np.random.default_rng(seed)
    return Product(normal(rng, (m, k), dtype), normal(rng, (k, n), dtype))


def blocked(matrix: np.ndarray, block: tuple[int, int]) -> np.ndarray:
    """The elements of a matrix block by block, as `tl.ref(..., blocked=True)` reads them."""
    blocks = [
        matrix[row : row + block[0], column : column + block[1]].reshape(-1)
        for row in range(0, matrix.shape[0], block[0])
        for column in range(0, matrix.shape[1], block[1])
    ]
    return np.concatenate(blocks)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@FEW
@given(size=sides, seed=seeds)
def test_dot_sums_in_float32_for_every_shape(
    dtype: DType, size: tuple[int, int, int], seed: int
) -> None:
    each = product(size, seed, dtype)
    result = computed(lambda: tl.dot(value(each.a), value(each.b)))
    assert result.dtype == np.float32
    assert (np.abs(result - each.exact) <= each.bound).all()


@FEW
@given(size=sides, seed=seeds)
def test_dot_of_i8_is_exact(size: tuple[int, int, int], seed: int) -> None:
    each = product(size, seed, tl.int8)
    result = computed(lambda: tl.dot(value(each.a), value(each.b)))
    np.testing.assert_array_equal(result, each.exact.astype(np.int32), strict=True)


@pytest.mark.parametrize("out", FLOATS, ids=repr)
@FEW
@given(size=sides, seed=seeds)
def test_the_result_is_rounded_once_to_its_type(
    out: DType, size: tuple[int, int, int], seed: int
) -> None:
    each = product(size, seed, tl.float16)
    wide = computed(lambda: tl.dot(value(each.a), value(each.b)))
    result = computed(lambda: tl.dot(value(each.a), value(each.b), out_dtype=out))
    np.testing.assert_array_equal(result, wide.astype(out.numpy), strict=True)


@pytest.mark.parametrize("dtype", [*FLOATS, tl.int8], ids=repr)
@FEW
@given(size=sides, seed=seeds, data=st.data())
def test_streamed_and_staged_operands_give_the_same_bits(
    dtype: DType, size: tuple[int, int, int], seed: int, data: st.DataObject
) -> None:
    each, (m, k, n) = product(size, seed, dtype), size
    pads = data.draw(st.tuples(*[st.integers(0, 3)] * 3))
    a, b = (np.pad(x, ((0, 0), (0, pad))) for x, pad in zip((each.a, each.b), pads, strict=False))
    a_tiles, b_tiles = blocked(each.a, (TILE.m, TILE.k)), blocked(each.b, (TILE.k, TILE.n))
    staged = computed(lambda: tl.dot(value(each.a), value(each.b)))
    strided, tiled = np.zeros((m, n + pads[2]), staged.dtype), np.zeros(m * n, staged.dtype)

    def kernel(a: Any, b: Any, strided: Any, a_tiles: Any, b_tiles: Any, tiled: Any) -> None:
        first, second = tl.ref(a, (m, k), (k + pads[0], 1)), tl.ref(b, (k, n), (n + pads[1], 1))
        one = tl.composite("gemm", first, second, tl.ref(strided, (m, n), (n + pads[2], 1)))
        first, second = tl.ref(a_tiles, (m, k), blocked=True), tl.ref(b_tiles, (k, n), blocked=True)
        other = tl.composite("gemm", first, second, tl.ref(tiled, (m, n), blocked=True))
        assert tl.wait(one) is None
        assert tl.wait(other) is None

    mock.launch(kernel, a, b, strided, a_tiles, b_tiles, tiled)
    np.testing.assert_array_equal(strided[:, :n], staged)
    assert not strided[:, n:].any()
    np.testing.assert_array_equal(tiled, blocked(staged, (TILE.m, TILE.n)))


@pytest.mark.parametrize("activation", [None, *ACTIVATIONS])
@FEW
@given(size=sides, seed=seeds, data=st.data())
def test_accumulator_bias_and_activation_come_before_the_rounding(
    activation: str | None, size: tuple[int, int, int], seed: int, data: st.DataObject
) -> None:
    dtype, out = data.draw(st.sampled_from(FLOATS)), data.draw(st.sampled_from(FLOATS))
    each, (m, _, n), rng = product(size, seed, dtype), size, np.random.default_rng(seed + 1)
    acc, bias = (
        normal(rng, (m, n), tl.float32),
        normal(rng, data.draw(st.sampled_from([(n,), (1, n)])), dtype),
    )

    def kernel() -> tl.Value:
        fused = tl.composite(
            "gemm",
            value(each.a),
            value(each.b),
            acc=value(acc),
            bias=value(bias),
            activation=activation,
            out_dtype=out,
        )
        result = tl.wait(fused)
        assert result is not None
        return result

    exact = acc + each.exact + bias.astype(np.float64)
    exact = exact if activation is None else ACTIVATIONS[activation](exact)
    # The slope of every activation is below 1.2; two more roundings to float32 of at most a few
    # units, one to the result.
    bound = 1.2 * (each.bound + 2**-22 * (1 + np.abs(acc) + np.abs(exact))) + eps(out) * np.abs(
        exact
    )
    assert (np.abs(computed(kernel).astype(np.float64) - exact) <= bound).all()


@FEW
@given(size=sides, seed=seeds)
def test_an_i8_product_takes_an_integer_bias_and_relu(
    size: tuple[int, int, int], seed: int
) -> None:
    each, rng = product(size, seed, tl.int8), np.random.default_rng(seed + 1)
    bias = rng.integers(-(10**6), 10**6, size[2]).astype(np.int32)

    def kernel() -> tl.Value:
        return tl.composite(
            "gemm", value(each.a), value(each.b), bias=value(bias), activation="relu"
        ).wait()

    np.testing.assert_array_equal(computed(kernel), np.maximum(each.exact + bias, 0))


@FEW
@given(size=sides, seed=seeds)
def test_the_accumulator_of_i8_wraps_round(size: tuple[int, int, int], seed: int) -> None:
    each = product(size, seed, tl.int8)
    acc = np.full(each.exact.shape, 2**31 - 1, np.int32)
    expected = (acc + each.exact + 2**31) % 2**32 - 2**31
    np.testing.assert_array_equal(
        computed(lambda: tl.dot(value(each.a), value(each.b), value(acc))), expected
    )


@FEW
@given(size=sides, seed=seeds, cuts=st.tuples(st.integers(1, 40), st.integers(1, 40)))
def test_the_numbers_depend_on_the_depth_of_the_tile_alone(
    size: tuple[int, int, int], seed: int, cuts: Any
) -> None:
    each = product(size, seed, tl.float32)
    gemm = checked_gemm(value(each.a), value(each.b))
    other = TileSize(cuts[0], TILE.k, cuts[1])
    np.testing.assert_array_equal(
        evaluate(gemm, each.a, each.b, TILE), evaluate(gemm, each.a, each.b, other)
    )


def test_a_step_rounds_to_float32_once() -> None:
    # The products are 2^-24 and 2^-49. Their sum brings 1 past the middle to the next float32, 1 +
    # 2^-23; rounded to float32 by itself it is 2^-24, and so is each of them: a tie that goes to
    # the even 1.
    a, b = np.array([[2**-12, 2**-25]], np.float32), np.array([[2**-12], [2**-24]], np.float32)
    assert accumulate(np.ones((1, 1), np.float32), a, b)[0, 0] == 1 + 2**-23


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_infinities_and_nan_go_through_without_a_warning(dtype: DType) -> None:
    greatest = ml_dtypes.finfo(dtype.numpy).max
    a = np.array([[np.inf, 1], [np.inf, -np.inf], [greatest, greatest]], dtype.numpy)
    result = computed(
        lambda: tl.dot(value(a), value(np.ones((2, 1), dtype.numpy)), out_dtype=dtype)
    )
    assert np.isinf(result[0])
    assert np.isnan(result[1])
    assert np.isinf(result[2])


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=30)
def test_a_blocked_matrix_is_a_permutation_in_which_each_block_is_contiguous(
    rows: int, columns: int, height: int, width: int
) -> None:
    matrix = np.arange(rows * columns).reshape(rows, columns)
    stored = blocked(matrix, (height, width))
    assert sorted(stored) == list(range(rows * columns))
    for row in range(0, rows, height):
        for column in range(0, columns, width):
            block = matrix[row : row + height, column : column + width]
            start = blocked_offset((rows, columns), (height, width), row, column)
            np.testing.assert_array_equal(stored[start : start + block.size], block.reshape(-1))
