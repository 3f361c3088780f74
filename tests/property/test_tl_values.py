"""Comparisons, selections, positions, running sums and views against numpy.

Shapes, axes and types are random; elements contain NaN and infinities; lengths may be 0.
"""

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runtime import tl
from runtime.core.dtypes import DType, boolean, float64, int8, int32, int64, uint8
from runtime.language.value import Pointer, Value
from tests.support.kernels import (
    FLOATS,
    NARROW,
    assert_rounded,
    computed,
    numbers,
    refused,
    value,
)

WHOLE = [int8, int32, int64, uint8]
TYPES = [*FLOATS, float64, *WHOLE, boolean]
SPECIALS = st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.5, 2.0])
shapes = arrays.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
SOME = settings(max_examples=10, deadline=None)


def elements(dtype: DType, shape: tuple[int, ...]) -> st.SearchStrategy[np.ndarray]:
    """Few different elements, so that many are equal; of floating-point types special ones."""
    if dtype == boolean:
        return arrays.arrays(np.bool_, shape)
    if dtype.is_floating_point:
        special = arrays.arrays(np.float64, shape, elements=SPECIALS)
        return special.map(lambda array: array.astype(dtype.numpy))
    return arrays.arrays(dtype.numpy, shape, elements=st.integers(0, 3))


def wide(array: np.ndarray) -> np.ndarray:
    """The elements in a type that numpy compares."""
    return array if array.dtype.kind in "iub" else array.astype(np.float64)


@st.composite
def along(draw: st.DrawFn, dtype: DType) -> tuple[np.ndarray, int]:
    """An array and one of its axes, from either end."""
    array = draw(elements(dtype, draw(shapes)))
    return array, draw(st.integers(-array.ndim, array.ndim - 1))


@pytest.mark.parametrize("dtype", TYPES, ids=repr)
@SOME
@given(data=st.data())
def test_a_comparison_is_that_of_numpy_and_selects(dtype: DType, data: st.DataObject) -> None:
    drawn = data.draw(arrays.mutually_broadcastable_shapes(num_shapes=4, min_side=0, max_dims=3))
    a, b, c, d = (data.draw(elements(dtype, shape)) for shape in drawn.input_shapes)
    compare = data.draw(
        st.sampled_from(
            [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
        )
    )
    mask = compare(wide(a), wide(b))
    found = computed(lambda: compare(value(a), value(b)))
    np.testing.assert_array_equal(found, mask, strict=True)
    chosen = computed(lambda: tl.where(compare(value(a), value(b)), value(c), value(d)))
    np.testing.assert_array_equal(wide(chosen), wide(np.where(mask, c, d)))
    number = computed(lambda: tl.where(value(a) == value(b), 1, value(c)))
    np.testing.assert_array_equal(wide(number), wide(np.where(wide(a) == wide(b), 1, wide(c))))


@pytest.mark.parametrize("dtype", [*WHOLE, boolean], ids=repr)
@SOME
@given(data=st.data())
def test_bits_are_combined_as_in_numpy(dtype: DType, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    a, b = data.draw(elements(dtype, shape)), data.draw(elements(dtype, shape))
    for combine in (operator.and_, operator.or_, operator.xor):
        found = computed(lambda combine=combine: combine(value(a), value(b)))
        np.testing.assert_array_equal(found, combine(a, b), strict=True)
    np.testing.assert_array_equal(computed(lambda: ~value(a)), ~a, strict=True)


@pytest.mark.parametrize("dtype", TYPES, ids=repr)
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@SOME
@given(data=st.data())
def test_the_position_of_an_extreme_is_the_first(
    name: str, dtype: DType, data: st.DataObject
) -> None:
    array, axis = data.draw(along(dtype).filter(lambda drawn: 0 not in drawn[0].shape))
    keep_dims = data.draw(st.booleans())
    for which in (axis, None):
        found = computed(
            lambda which=which: getattr(tl, name)(value(array), which, keep_dims=keep_dims)
        )
        expected = getattr(np, name)(wide(array), axis=which, keepdims=keep_dims)
        np.testing.assert_array_equal(found, np.asarray(expected, np.int32), strict=True)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@SOME
@given(data=st.data())
def test_each_running_sum_of_floats_is_rounded_once(dtype: DType, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    array = data.draw(st.one_of(numbers(dtype, shape), elements(dtype, shape)))
    with np.errstate(all="ignore"):
        exact = np.cumsum(array.astype(np.longdouble), axis=axis).astype(np.float64)
    assert_rounded(computed(lambda: tl.cumsum(value(array), axis)), exact, dtype)


@pytest.mark.parametrize("dtype", [*WHOLE, boolean], ids=repr)
@SOME
@given(data=st.data())
def test_running_sums_of_integers_wrap_round(dtype: DType, data: st.DataObject) -> None:
    shape = data.draw(shapes)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    array = data.draw(arrays.arrays(dtype.numpy, shape))
    with np.errstate(all="ignore"):
        expected = np.cumsum(array.astype(np.int64), axis=axis)
    found = computed(lambda: tl.cumsum(value(array), axis))
    np.testing.assert_array_equal(
        found, expected.astype(np.int64 if dtype == int64 else np.int32), strict=True
    )


@SOME
@given(start=st.integers(-200, 200), count=st.integers(0, 40), dtype=st.sampled_from(NARROW))
def test_a_range_has_every_integer_or_is_refused(start: int, count: int, dtype: DType) -> None:
    exact = np.arange(start, start + count)
    if dtype == int8 and count and not -128 <= start <= start + count - 1 <= 127:
        problem = refused(lambda: tl.arange(start, start + count, int8))
        assert "is not exact in i8" in problem
        return
    found = computed(lambda: tl.arange(start, start + count, dtype))
    np.testing.assert_array_equal(found, exact.astype(dtype.numpy), strict=True)


@st.composite
def reshapes(draw: st.DrawFn) -> tuple[np.ndarray, list[Callable[[Any], Any]]]:
    """An array, and views that are taken of it one after the other."""
    shape, views = draw(arrays.array_shapes(min_dims=1, max_dims=3, max_side=6)), list[Any]()
    whole = np.arange(prod(shape), dtype=np.int32).reshape(shape)
    array: np.ndarray = whole
    for _ in range(draw(st.integers(1, 4))):
        view = draw(_views(array))
        views.append(view)
        array = view(array)
    return whole, views


def _views(array: np.ndarray) -> st.SearchStrategy[Callable[[Any], Any]]:
    kinds = [st.sampled_from(_factors(array.size)).map(lambda to: lambda x: x.reshape(to))]
    if array.ndim >= 2:
        kinds.append(st.just(lambda x: x.mT))
    if array.ndim and array.shape[0]:
        kinds.append(st.integers(0, array.shape[0]).map(lambda at: lambda x: x[at // 2 : at]))
    kinds.append(st.just(lambda x: x[None]))
    return st.one_of(kinds)


def _factors(size: int) -> list[tuple[int, ...]]:
    halves = [(n, size // n) for n in range(1, size + 1) if size % n == 0]
    thirds = [(a, n, b // n) for a, b in halves for n in range(1, b + 1) if b % n == 0]
    return [(size,), (-1,) if size else (0,), *halves, *thirds]


@settings(max_examples=80, deadline=None)
@given(drawn=reshapes())
def test_views_of_views_have_the_elements_that_numpy_finds(
    drawn: tuple[np.ndarray, list[Callable[[Any], Any]]],
) -> None:
    array, views = drawn

    def kernel(p: Pointer) -> Value:
        x = whole = tl.load(p, array.shape)
        for view in views:
            x = view(x)
            assert x.data is not None
            assert whole.data is not None
            # A copy begins a block of its own.
            whole = whole if np.shares_memory(x.data, whole.data) else x
            at = np.full(x.shape, (x.address - whole.address) // 4)
            for index, stride in zip(np.indices(x.shape), x.strides, strict=True):
                at += index * stride
            # Engines read elements by address and strides.
            np.testing.assert_array_equal(whole.data.reshape(-1)[at], x.data)
        return x + 0

    expected = array
    for view in views:
        expected = view(expected)
    np.testing.assert_array_equal(computed(kernel, array), expected, strict=True)
