"""int64, uint8, bool and float64 on the vector engine."""

import re
from collections.abc import Callable

import numpy as np
import pytest

from runtime import tl
from runtime.language.value import Value
from tests.support.kernels import computed, refused, value

WIDE = np.array([-(1 << 63), -1, 0, 1, (1 << 62) + 3, (1 << 63) - 1])
BYTES = np.array([0, 1, 127, 128, 255], np.uint8)
FLAGS = np.array([True, False, True])


@pytest.mark.parametrize("array", [WIDE, BYTES])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum"])
def test_integers_are_exact_and_wrap_round(name: str, array: np.ndarray) -> None:
    other = array[::-1].copy()
    result = computed(lambda: getattr(tl, name)(value(array), value(other)))
    numpy = {"sub": np.subtract, "mul": np.multiply}.get(name) or getattr(np, name)
    np.testing.assert_array_equal(result, numpy(array, other), strict=True)


def test_float64_keeps_its_digits() -> None:
    thirds = np.array([1.0, 2.0]) / 3
    np.testing.assert_array_equal(
        computed(lambda: value(thirds) * 3 + 1e-12), thirds * 3 + 1e-12, strict=True
    )


@pytest.mark.parametrize(
    ("array", "to", "expected"),
    [
        (np.array([-1.5, 1e30, -np.inf, np.nan]), tl.int64, [-1, (1 << 63) - 1, -(1 << 63), 0]),
        (np.array([-1.5, 1e30, np.nan], np.float32), tl.uint8, [0, 255, 0]),
        (np.array([0.0, -0.5, np.nan]), tl.int1, [False, True, True]),
        (np.array([0, 256]), tl.int1, [False, True]),
        (np.array([0, 256, -1]), tl.uint8, [0, 0, 255]),
        (FLAGS, tl.float32, [1.0, 0.0, 1.0]),
        (FLAGS, tl.int64, [1, 0, 1]),
        (np.array([(1 << 53) + 1]), tl.float64, [float(1 << 53)]),
    ],
)
def test_a_cast_saturates_from_floats_wraps_integers_and_tests_bools(
    array: np.ndarray, to: tl.DType, expected: list[float]
) -> None:
    result = computed(lambda: value(array).to(to))
    assert result.dtype == to.numpy
    assert result.tolist() == expected


@pytest.mark.parametrize(
    ("array", "expected"),
    [(BYTES, np.int32(511)), (FLAGS, np.int32(2)), (WIDE[1:5], np.int64((1 << 62) + 3))],
)
def test_sums_of_bytes_and_of_bools_are_i32(array: np.ndarray, expected: np.generic) -> None:
    result = computed(lambda: tl.sum(value(array)))
    assert (result.dtype, result.item()) == (expected.dtype, expected.item())


def test_bools_have_a_maximum_and_a_minimum_and_are_moved() -> None:
    other = FLAGS[::-1] & False
    np.testing.assert_array_equal(
        computed(lambda: tl.maximum(value(FLAGS), value(other))), FLAGS, strict=True
    )
    assert not computed(lambda: tl.min(value(FLAGS)))
    assert computed(lambda: tl.full(2, True, tl.int1)).tolist() == [True, True]


@pytest.mark.parametrize(
    ("kernel", "problem"),
    [
        (lambda: value(FLAGS) + value(FLAGS), "add: not defined for bool, which has &, |, ^"),
        (lambda: value(FLAGS) * 1, "convert with x.to(tl.int32)"),
        (lambda: value(WIDE) / 2, "div: not defined for i64, only for floating-point values"),
        (lambda: value(WIDE) + ((1 << 60) + 1), "is beyond 2^53; the engine takes numbers as"),
        (lambda: value(BYTES) + 256, "add: 256 beside a value of u8 is not an u8 itself"),
        (
            lambda: tl.dot(value(np.ones((2, 2))), value(np.ones((2, 2)))),
            "gemm: operands are f64; the engine multiplies f16, bf16, f32, f8e4m3, f8e5m2 and",
        ),
        (
            lambda: tl.dot(
                value(np.ones((2, 2), np.int8)),
                value(np.ones((2, 2), np.int8)),
                out_dtype=tl.int64,
            ),
            "gemm: a result of i64; the engine has f16, bf16, f32, f8e4m3, f8e5m2, i8 and i32:",
        ),
    ],
)
def test_what_the_engines_lack_names_the_conversion(
    kernel: Callable[[], Value], problem: str
) -> None:
    assert re.search(re.escape(problem), refused(kernel))
