"""8-bit floating-point values: each operation is that on float32, rounded with saturation."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runtime import tl
from runtime.core.dtypes import DType
from runtime.language.functions import COMPARISONS, ELEMENTWISE
from runtime.language.value import Value
from tests.support.kernels import computed, value

EIGHT = [tl.float8e4nv, tl.float8e5]
FLOATING = sorted(name for name, each in ELEMENTWISE.items() if each.floats)
SOME = settings(max_examples=8, deadline=None)


def elements(dtype: DType, shape: Any) -> st.SearchStrategy[np.ndarray]:
    """All bit patterns: with NaN, and the infinities of f8e5m2."""
    return arrays.arrays(np.uint8, shape).map(lambda codes: codes.view(dtype.numpy))


def assert_same(found: np.ndarray, expected: np.ndarray) -> None:
    """The same type and numbers; NaN is any NaN."""
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def wide(array: np.ndarray) -> Value:
    return value(array.astype(np.float32))


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
@SOME
@given(data=st.data())
def test_functions_are_those_of_float32_rounded(dtype: DType, data: st.DataObject) -> None:
    shapes = arrays.mutually_broadcastable_shapes(num_shapes=3, max_dims=2, max_side=6)
    drawn = [data.draw(elements(dtype, each)) for each in data.draw(shapes).input_shapes]
    for name in FLOATING:
        operands = drawn[: ELEMENTWISE[name].operands]
        call = getattr(tl, name)
        assert_same(
            computed(lambda call=call, operands=operands: call(*map(value, operands))),
            computed(lambda call=call, operands=operands: call(*map(wide, operands)).to(dtype)),
        )


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
@SOME
@given(data=st.data())
def test_what_combines_elements_is_that_of_float32_rounded(
    dtype: DType, data: st.DataObject
) -> None:
    array = data.draw(elements(dtype, arrays.array_shapes(min_dims=1, max_dims=3, max_side=5)))
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    for call in (tl.sum, tl.max, tl.min, tl.cumsum, tl.softmax):
        assert_same(
            computed(lambda call=call: call(value(array), axis=axis)),
            computed(lambda call=call: call(wide(array), axis=axis).to(dtype)),
        )
    for call in (tl.argmax, tl.argmin):
        assert_same(
            computed(lambda call=call: call(value(array), axis=axis)),
            computed(lambda call=call: call(wide(array), axis=axis)),
        )
    other = data.draw(elements(dtype, array.shape))
    for compare in (each.function for each in COMPARISONS.values()):
        expected = compare(array.astype(np.float32), other.astype(np.float32))
        mask = computed(lambda compare=compare: compared(compare, value(array), value(other)))
        np.testing.assert_array_equal(mask, expected, strict=True)


def compared(compare: Any, a: Value, b: Value) -> Value:
    """A comparison by the function of numpy."""
    (name,) = (name for name, each in COMPARISONS.items() if each.function is compare)
    return getattr(a, f"__{name}__")(b)


@pytest.mark.parametrize("dtype", EIGHT, ids=repr)
@SOME
@given(data=st.data(), m=st.integers(1, 40), k=st.integers(1, 70), n=st.integers(1, 40))
def test_a_product_is_summed_in_float32_and_may_be_stored_in_8_bits(
    dtype: DType, data: st.DataObject, m: int, k: int, n: int
) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    a, b = (rng.normal(size=size).astype(dtype.numpy) for size in ((m, k), (n, k)))
    exact = computed(lambda: tl.dot(wide(a), wide(b).mT))
    assert_same(computed(lambda: tl.dot(value(a), value(b).mT)), exact)
    assert_same(
        computed(lambda: tl.dot(value(a), value(b).mT, out_dtype=dtype)),
        computed(lambda: value(exact).to(dtype)),
    )
