"""The kernel language on a PE without a chip: pointers, values and arithmetic against numpy, type by type."""

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runtime import tl
from runtime.dtypes import ALL, DType, from_numpy
from runtime.language.operations import BINARY, UNARY
from runtime.language.value import Pointer, Value
from tests.support.mock_pe import MockPe, run

FLOATS = [dtype for dtype in ALL if dtype.is_floating_point]
INTEGERS = [dtype for dtype in ALL if not dtype.is_floating_point]
BASE = 0x1000


def value(array: np.ndarray) -> Value:
    return Value(array.shape, from_numpy(array.dtype), array)


def compute(kernel: Callable[[], Value]) -> np.ndarray:
    """The elements of what `kernel` returns on one PE."""
    results: list[Value] = []
    assert run([(MockPe(), lambda: results.append(kernel()))]) == []
    assert results[0].data is not None
    return results[0].data


def numbers(dtype: DType, shape: tuple[int, ...] = (5,)) -> st.SearchStrategy[np.ndarray]:
    """Arrays of a type: all its integers, or finite numbers of moderate size."""
    if not dtype.is_floating_point:
        return arrays.arrays(dtype.numpy, shape)
    finite = arrays.arrays(np.float32, shape, elements=st.floats(-30, 30, width=16))
    return finite.map(lambda array: array.astype(dtype.numpy))


def rounded_once(exact: np.ndarray, dtype: DType) -> np.ndarray:
    """Computed in double precision, then in single precision, then in the type: the rounding that hardware does."""
    return exact.astype(np.float32).astype(dtype.numpy)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_binary_operation_rounds_the_exact_result_once(name: str, dtype: DType, data: st.DataObject) -> None:
    a, b = data.draw(numbers(dtype)), data.draw(numbers(dtype))
    with np.errstate(all="ignore"):
        exact = BINARY[name](a.astype(np.float64), b.astype(np.float64))
        expected = rounded_once(exact, dtype)
    result = compute(lambda: getattr(tl, name)(value(a), value(b)))
    assert result.dtype == dtype.numpy
    np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("dtype", INTEGERS, ids=repr)
@pytest.mark.parametrize("name", sorted(set(BINARY) - {"div"}))
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_integers_wrap_round_as_in_numpy(name: str, dtype: DType, data: st.DataObject) -> None:
    a, b = data.draw(numbers(dtype)), data.draw(numbers(dtype))
    with np.errstate(all="ignore"):
        expected = BINARY[name](a, b)
    np.testing.assert_array_equal(compute(lambda: getattr(tl, name)(value(a), value(b))), expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("exp", np.exp), ("log", np.log), ("sqrt", np.sqrt), ("abs", np.abs), ("sin", np.sin), ("cos", np.cos),
        ("sigmoid", lambda x: 1 / (1 + np.exp(-x))),
    ],
)  # fmt: skip
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_function_is_right_to_a_unit_in_the_last_place(name: str, exact: Any, dtype: DType, data: st.DataObject) -> None:
    x = np.abs(data.draw(numbers(dtype))) if name in ("log", "sqrt") else data.draw(numbers(dtype))
    with np.errstate(all="ignore"):
        expected = rounded_once(exact(x.astype(np.float64)), dtype)
        result = compute(lambda: getattr(tl, name)(value(x)))
    assert result.dtype == dtype.numpy
    eps = float(ml_dtypes.finfo(dtype.numpy).eps)
    np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=2 * eps, atol=1e-6)


def test_every_function_is_tested_and_can_be_called() -> None:
    assert set(UNARY) == {"exp", "log", "sqrt", "abs", "sin", "cos", "sigmoid"}
    assert set(BINARY) | set(UNARY) <= set(tl.__all__)


X = np.array([1, 2, 4], np.float32)


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (lambda x: x + 1, X + 1),
        (lambda x: 1 + x, X + 1),
        (lambda x: x - 3, X - 3),
        (lambda x: 3 - x, 3 - X),
        (lambda x: x * 2.5, X * 2.5),
        (lambda x: 2.5 * x, X * 2.5),
        (lambda x: x / 2, X / 2),
        (lambda x: 8 / x, 8 / X),
        (lambda x: -x, -X),
        (lambda x: x + x * x, X + X * X),
        (lambda x: tl.maximum(x, 2), np.maximum(X, 2)),
        (lambda x: tl.minimum(3, x), np.minimum(X, 3)),
    ],
)
def test_operators_take_values_and_numbers_on_either_side(kernel: Callable[[Value], Value], expected: np.ndarray) -> None:
    np.testing.assert_array_equal(compute(lambda: kernel(value(X))), expected)


@pytest.mark.parametrize("number", [2.5, 1 << 40])
def test_a_number_that_an_integer_type_does_not_hold_is_refused(number: float) -> None:
    with pytest.raises(TypeError, match="i32"):
        compute(lambda: value(np.arange(3, dtype=np.int32)) * number)


@pytest.mark.parametrize("name", ["div", "exp", "sqrt"])
def test_what_has_no_integer_result_is_not_defined_for_integers(name: str) -> None:
    x = value(np.arange(3, dtype=np.int8))
    operands = (x, x) if name in BINARY else (x,)
    with pytest.raises(TypeError, match=f"{name}: not defined for i8, only for floating-point values"):
        compute(lambda: getattr(tl, name)(*operands))


@pytest.mark.parametrize("dtype", FLOATS, ids=repr)
def test_what_a_type_cannot_hold_becomes_infinite_without_a_warning(dtype: DType) -> None:
    x = np.array([1, -1], dtype.numpy)
    for kernel in (lambda: value(x) * 1e39, lambda: value(x) / 0.0, lambda: value(x) * 1e30 * 1e30):
        assert np.isinf(compute(kernel).astype(np.float64)).all()


@pytest.mark.parametrize("name", ["store", "send"])
def test_what_is_no_value_cannot_be_stored_or_sent(name: str) -> None:
    where = Pointer(BASE, tl.float32) if name == "store" else "E"
    with pytest.raises(TypeError, match=rf"tl\.{name} takes a value in TCM, such as tl\.load returns, not float 5\.0"):
        run([(MockPe(), lambda: getattr(tl, name)(where, 5.0))])


def test_a_negative_length_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("shape (2, -1): a length cannot be negative")):
        compute(lambda: tl.load(Pointer(BASE, tl.float32), (2, -1)))


def test_two_numbers_without_a_value_have_no_type() -> None:
    with pytest.raises(TypeError, match="add: operands have types none; they must be equal"):
        compute(lambda: tl.add(1, 2))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=4))
def test_cat_puts_values_behind_each_other(sizes: list[int]) -> None:
    parts = [np.arange(size, dtype=np.int32) + 10 * index for index, size in enumerate(sizes)]
    np.testing.assert_array_equal(compute(lambda: tl.cat([value(part) for part in parts])), np.concatenate(parts))


def test_cat_flattens_and_refuses_mixed_types() -> None:
    assert compute(lambda: tl.cat([value(np.ones((2, 2), np.float32)), value(X)])).shape == (7,)
    with pytest.raises(TypeError, match="cat: values have types f16, f32; they must be equal"):
        compute(lambda: tl.cat([value(X), value(X.astype(np.float16))]))


@given(st.integers(0, 10), st.integers(0, 10))
def test_a_slice_of_a_value_is_a_view_of_its_first_axis(start: int, stop: int) -> None:
    array = np.arange(16).reshape(8, 2).astype(np.float32)
    part = value(array)[start:stop]
    np.testing.assert_array_equal(part.data, array[start:stop])
    assert part.shape == array[start:stop].shape


def test_a_slice_with_a_step_is_refused() -> None:
    with pytest.raises(ValueError, match="step 1 only, not 2"):
        value(X)[::2]


def test_a_kernel_cannot_branch_on_data() -> None:
    with pytest.raises(TypeError, match="kernels cannot branch on data"):
        bool(value(X))


def test_pointers_count_elements() -> None:
    at = Pointer(BASE, tl.float16)
    assert (int(at + 3), int(3 + at), int(at + 3 - 1)) == (BASE + 6, BASE + 6, BASE + 4)


@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_bytes_and_values_are_inverse(dtype: DType) -> None:
    array = np.arange(6).reshape(2, 3).astype(dtype.numpy)
    back = Value.from_bytes(value(array).tobytes(), (2, 3), dtype)
    np.testing.assert_array_equal(back.data, array)
    assert (back.numel, back.nbytes) == (6, 6 * dtype.itemsize)


def test_a_value_without_data_keeps_shape_and_type_through_arithmetic() -> None:
    blank = Value((2, 3), tl.float16, None)
    results: list[Value] = []
    assert run([(MockPe(), lambda: results.append(tl.exp(blank + 1)))]) == []
    assert (results[0].shape, results[0].dtype, results[0].data, blank.tobytes()) == ((2, 3), tl.float16, None, b"")
    assert repr(blank) == "Value(shape=(2, 3), dtype=f16)"


@pytest.mark.parametrize(("a", "b", "result"), [(0, 4, 0), (1, 4, 1), (8, 4, 2), (9, 4, 3)])
def test_cdiv_rounds_up(a: int, b: int, result: int) -> None:
    assert tl.cdiv(a, b) == result


def test_load_and_store_move_blocks_of_memory() -> None:
    pe = MockPe()
    at = pe.put(BASE, np.arange(12, dtype=np.int32))

    def kernel() -> None:
        block = tl.load(at + 4, (2, 3))
        assert block.shape == (2, 3)
        tl.store(at, block * 10)

    assert run([(pe, kernel)]) == []
    assert pe.memory[BASE].tolist() == [40, 50, 60, 70, 80, 90, *range(6, 12)]


def test_an_unknown_word_of_the_language_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=re.escape("sort")):
        tl.sort  # noqa: B018
