"""Operations of the vector engine against numpy in float64 or exact integers.

Shapes, broadcasts, axes and types are random.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runtime import tl
from runtime.core.dtypes import DType
from runtime.language.functions import ELEMENTWISE
from tests.support.kernels import (
    FLOATS,
    INTEGERS,
    NARROW,
    assert_rounded,
    computed,
    numbers,
    refused,
    value,
)


def error_function(x: float) -> float:
    """M. Abramowitz and I. Stegun, Handbook of Mathematical Functions, 7.1.6: positive terms."""
    if abs(x) > 6:
        return math.copysign(1, x)
    total = term = x
    for n in range(1, 150):
        term *= 2 * x * x / (2 * n + 1)
        total += term
    return 2 / math.sqrt(math.pi) * math.exp(-x * x) * total


EXACT: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "maximum": lambda a, b: np.where(a > b, a, b),
    "minimum": lambda a, b: np.where(a < b, a, b),
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "fma": lambda a, b, c: a * b + c,
    "clamp": lambda x, low, high: np.minimum(high, np.maximum(low, x)),
    "pow": lambda a, b: (a.astype(np.longdouble) ** b).astype(np.float64),
    "abs": lambda x: np.where(x < 0, -x, x),
    "relu": lambda x: np.where(x < 0, 0, x),
    "exp": lambda x: np.float64(np.e) ** x,
    "exp2": lambda x: np.exp(x * np.log(np.longdouble(2))).astype(np.float64),
    "log": np.log,
    "log2": lambda x: (np.log(x.astype(np.longdouble)) / np.log(np.longdouble(2))).astype(float),
    "sqrt": lambda x: x**0.5,
    "rsqrt": lambda x: x**-0.5,
    "floor": lambda x: x // 1,
    "ceil": lambda x: -(-x // 1),
    # Halves up, less the cases of a half in front of which the integer is even.
    "round": lambda x: (x + 0.5) // 1 - ((x % 2) == 0.5),
    "erf": np.vectorize(error_function, otypes=[float]),
    "sin": np.sin,
    "cos": np.cos,
    "tanh": lambda x: 1 - 2 / (np.exp(2 * x) + 1),
    "sigmoid": lambda x: 0.5 + 0.5 * np.tanh(x / 2),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
}
POSITIVE = ("log", "log2", "sqrt", "rsqrt", "pow")
"""Functions whose operands are drawn without negative numbers."""
shapes = arrays.array_shapes(min_dims=1, max_dims=3, max_side=5)
PER_TYPE = settings(max_examples=8, deadline=None)


def broadcast(count: int) -> st.SearchStrategy[tuple[tuple[int, ...], ...]]:
    """`count` shapes that broadcast to one."""
    return arrays.mutually_broadcastable_shapes(num_shapes=count, max_dims=3, max_side=5).map(
        lambda drawn: drawn.input_shapes
    )


def operands(data: st.DataObject, name: str, dtype: DType) -> list[np.ndarray]:
    """Operands of an operation, where it is defined."""
    drawn = [
        data.draw(numbers(dtype, shape))
        for shape in data.draw(broadcast(ELEMENTWISE[name].operands))
    ]
    return [np.abs(array) for array in drawn] if name in POSITIVE else drawn


def wrapped(exact: np.ndarray, dtype: DType) -> np.ndarray:
    """Exact integers reduced to the bits of a type."""
    half = 1 << (8 * dtype.itemsize - 1)
    return ((exact + half) % (2 * half) - half).astype(dtype.numpy)


def test_every_elementwise_operation_is_a_function_of_the_language_and_compared_here() -> None:
    assert set(EXACT) == set(ELEMENTWISE)
    assert set(ELEMENTWISE) <= set(tl.__all__)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("name", sorted(name for name in ELEMENTWISE if ELEMENTWISE[name].floats))
@PER_TYPE
@given(data=st.data())
def test_an_elementwise_operation_is_the_exact_result_rounded(
    name: str, dtype: DType, data: st.DataObject
) -> None:
    arguments = operands(data, name, dtype)
    with np.errstate(all="ignore"):
        exact = EXACT[name](*(array.astype(np.float64) for array in arguments))
    result = computed(lambda: getattr(tl, name)(*map(value, arguments)))
    # Formulas that add 1 and take it away keep 2^-53 of it, times an operand of up to 30.
    assert_rounded(result, exact, dtype, atol=1e-14 if name in ("tanh", "sigmoid", "gelu") else 0)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "div", "maximum", "minimum", "sqrt", "abs", "relu"]
)
@PER_TYPE
@given(data=st.data())
def test_arithmetic_is_rounded_correctly(name: str, dtype: DType, data: st.DataObject) -> None:
    arguments = operands(data, name, dtype)
    with np.errstate(all="ignore"):
        exact = np.asarray(EXACT[name](*(array.astype(np.float64) for array in arguments)))
        expected = exact.astype(np.float32).astype(dtype.numpy)
    result = computed(lambda: getattr(tl, name)(*map(value, arguments)))
    np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@pytest.mark.parametrize("name", sorted(name for name in ELEMENTWISE if ELEMENTWISE[name].integers))
@PER_TYPE
@given(data=st.data())
def test_integers_are_exact_and_wrap_round(name: str, dtype: DType, data: st.DataObject) -> None:
    arguments = operands(data, name, dtype)
    # Products of two i32 and a third one on top fit 64 bits.
    exact = np.asarray(EXACT[name](*(array.astype(np.int64) for array in arguments)))
    np.testing.assert_array_equal(
        computed(lambda: getattr(tl, name)(*map(value, arguments))), wrapped(exact, dtype)
    )


def test_bits_of_floating_point_values_are_not_combined() -> None:
    ones = np.ones(3, np.float32)
    text = refused(lambda: tl.bitwise_or(value(ones), value(ones)))
    assert text == "bitwise_or: not defined for f32, only for integers and bool"


@st.composite
def reductions(draw: st.DrawFn) -> tuple[tuple[int, ...], int | None, bool]:
    """A shape, an axis of it from either end or None, and keep_dims."""
    shape = draw(shapes)
    return shape, draw(st.none() | st.integers(-len(shape), len(shape) - 1)), draw(st.booleans())


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@PER_TYPE
@given(reduction=reductions(), data=st.data())
def test_a_sum_of_floats_is_rounded_once(
    reduction: tuple[Any, ...], dtype: DType, data: st.DataObject
) -> None:
    shape, axis, keep_dims = reduction
    array = data.draw(numbers(dtype, shape))
    result = computed(lambda: tl.sum(value(array), axis, keep_dims=keep_dims))
    # In extended precision, so that the sum in float64 is compared with a better one.
    exact = np.sum(array.astype(np.longdouble), axis=axis, keepdims=keep_dims).astype(np.float64)
    assert_rounded(result, np.asarray(exact), dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@PER_TYPE
@given(reduction=reductions(), data=st.data())
def test_a_sum_of_integers_is_an_i32_that_wraps(
    reduction: tuple[Any, ...], dtype: DType, data: st.DataObject
) -> None:
    shape, axis, keep_dims = reduction
    array = data.draw(numbers(dtype, shape))
    result = computed(lambda: tl.sum(value(array), axis, keep_dims=keep_dims))
    exact = np.asarray(np.sum(array.astype(np.int64), axis=axis, keepdims=keep_dims))
    np.testing.assert_array_equal(result, wrapped(exact, tl.int32), strict=True)


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
@pytest.mark.parametrize("name", ["max", "min"])
@PER_TYPE
@given(reduction=reductions(), data=st.data())
def test_the_greatest_and_the_least_are_elements(
    name: str, dtype: DType, reduction: tuple[Any, ...], data: st.DataObject
) -> None:
    shape, axis, keep_dims = reduction
    array = data.draw(numbers(dtype, shape))
    result = computed(lambda: getattr(tl, name)(value(array), axis=axis, keep_dims=keep_dims))
    expected = getattr(np, name)(array.astype(np.float64), axis=axis, keepdims=keep_dims)
    np.testing.assert_array_equal(result, np.asarray(expected).astype(dtype.numpy), strict=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@PER_TYPE
@given(reduction=reductions(), data=st.data())
def test_a_softmax_is_rounded_once(
    reduction: tuple[Any, ...], dtype: DType, data: st.DataObject
) -> None:
    shape, axis, _ = reduction
    array, along = data.draw(numbers(dtype, shape)), -1 if axis is None else axis
    result = computed(lambda: tl.softmax(value(array), axis=along))
    # No element exceeds 30, so the plain formula does not overflow.
    e = np.exp(array.astype(np.float64))
    assert_rounded(result, e / e.sum(axis=along, keepdims=True), dtype)


@pytest.mark.parametrize("to", NARROW, ids=repr)
@pytest.mark.parametrize("dtype", NARROW, ids=repr)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_a_cast_rounds_once_drops_fractions_and_saturates_from_floats(
    to: DType, dtype: DType, data: st.DataObject
) -> None:
    array = data.draw(numbers(dtype, shapes))
    result = computed(lambda: value(array).to(to))
    if to.is_floating_point:
        assert_rounded(result, array.astype(np.float64), to)
    elif dtype.is_floating_point:
        limits = np.iinfo(to.numpy.name)
        expected = [
            min(max(int(number), limits.min), limits.max)
            for number in array.astype(np.float64).reshape(-1)
        ]
        assert result.reshape(-1).tolist() == expected
    else:
        np.testing.assert_array_equal(result, wrapped(array.astype(np.int64), to))


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
@PER_TYPE
@given(data=st.data())
def test_operations_that_only_move_keep_every_element(dtype: DType, data: st.DataObject) -> None:
    matrix = data.draw(numbers(dtype, arrays.array_shapes(min_dims=2, max_dims=2)))
    parts = data.draw(st.lists(numbers(dtype, shapes), min_size=1, max_size=4))
    np.testing.assert_array_equal(computed(lambda: tl.trans(value(matrix))), matrix.T)
    np.testing.assert_array_equal(computed(lambda: value(matrix).T), matrix.T)
    flat = np.concatenate([part.reshape(-1) for part in parts])
    np.testing.assert_array_equal(computed(lambda: tl.cat([value(part) for part in parts])), flat)


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
@PER_TYPE
@given(shape=shapes, number=st.integers(-128, 127))
def test_full_and_zeros_hold_one_number_everywhere(
    dtype: DType, shape: tuple[int, ...], number: int
) -> None:
    np.testing.assert_array_equal(
        computed(lambda: tl.full(shape, number, dtype)), np.full(shape, number, dtype.numpy)
    )
    np.testing.assert_array_equal(
        computed(lambda: tl.zeros(shape, dtype)), np.zeros(shape, dtype.numpy)
    )
