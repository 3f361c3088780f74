"""Kernels in the mock runtime: their results, and the errors which refuse them."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from runtime import mock
from runtime.core.dtypes import DType, bfloat16, float16, float32, from_numpy, int8, int32
from runtime.core.errors import KernelError
from runtime.language.value import Value

FLOATS = [float16, bfloat16, float32]
INTEGERS = [int8, int32]
NARROW = (*FLOATS, *INTEGERS)
"""The types of the GEMM engine and its sums, which the vector engine computes in 32 bits; int64,
uint8, bool and float64 have tests of their own.
"""


def value(array: np.ndarray) -> Value:
    """A value in TCM that was not loaded."""
    return Value(array.shape, from_numpy(array.dtype), array)


def computed(kernel: Callable[..., Value], *arguments: Any) -> np.ndarray:
    """The elements of the value which `kernel` returns on one PE."""
    results: list[Value] = []

    def whole(*passed: Any) -> None:
        results.append(kernel(*passed))

    mock.launch(whole, *arguments)
    [result] = results
    assert result.data is not None
    assert (result.data.shape, result.data.dtype) == (result.shape, result.dtype.numpy)
    return result.data


def refused(kernel: Callable[..., object], *arguments: Any) -> str:
    """The problem of the `KernelError` which refuses `kernel`; it names a line of the kernel."""
    with pytest.raises(KernelError) as raised:
        mock.launch(kernel, *arguments)
    error = raised.value
    path, _, line = error.line.rpartition(":")
    assert kernel.__code__.co_filename.endswith(path)
    assert int(line) in {number for *_, number in kernel.__code__.co_lines()}
    assert (error.kernel, error.coordinates) == (kernel.__name__, (0, 0, 0))
    return error.problem


def numbers(
    dtype: DType, shape: tuple[int, ...] | st.SearchStrategy[tuple[int, ...]]
) -> st.SearchStrategy[np.ndarray]:
    """Arrays of a type: all its integers, or finite numbers of moderate size."""
    if not dtype.is_floating_point:
        return arrays.arrays(dtype.numpy, shape)
    finite = arrays.arrays(np.float32, shape, elements=st.floats(-30, 30, width=16))
    return finite.map(lambda array: array.astype(dtype.numpy))


def assert_rounded(result: np.ndarray, exact: np.ndarray, dtype: DType, *, atol: float = 0) -> None:
    """`result` is `exact` rounded to `dtype`, up to a unit in the last place or `atol`."""
    with np.errstate(all="ignore"):
        expected = exact.astype(dtype.numpy).astype(np.float64)
    least = float(ml_dtypes.finfo(dtype.numpy).smallest_subnormal)
    assert result.dtype == dtype.numpy
    np.testing.assert_allclose(
        result.astype(np.float64), expected, rtol=eps(dtype), atol=max(least, atol)
    )


def eps(dtype: DType) -> float:
    """The distance from 1 to the next number of a floating-point type."""
    return float(ml_dtypes.finfo(dtype.numpy).eps)
