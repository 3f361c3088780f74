"""The arithmetic of the vector engine: the elements of a result by the name of the operation.

Floating-point results are those of an engine that evaluates an operation exactly, rounds to
float32, and then rounds to the type of the operands: numpy computes in float64, which gives the
same float32 on every machine. f64 is rounded once, by numpy. A sum is rounded once, to its type,
and so is each element of a running sum. Integers keep their type and wrap round; only sums of i8,
u8 and bool widen, to i32. A Python number takes the type of the value operand.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from runtime.core.dtypes import DType, float32, float64, from_numpy
from runtime.language.conversions import converted, element, rounded
from runtime.language.functions import COMPARISONS, ELEMENTWISE, REDUCTIONS, SCANS, Array

_ROUNDED_ONCE = frozenset({np.add, np.subtract, np.multiply})
"""Functions whose exact result numpy rounds once, to the type of its operands."""

_POSITIONS = frozenset({"argmax", "argmin"})
"""Reductions whose result is an index, and not one of the elements or their sum."""


def compute(
    name: str,
    operands: Sequence[Array | float],
    dtype: DType,
    *,
    axis: int | None = None,
    keep_dims: bool = False,
    shape: Sequence[int] | None = None,
) -> Array:
    """The elements of the result, a new array of `dtype`, row-major; operands are as `infer`
    accepts them.

    `dtype` is the type that `infer` returned, `shape` the shape of `full`.
    """
    with np.errstate(all="ignore"):
        if name in ELEMENTWISE:
            result = _evaluated(ELEMENTWISE[name].function, operands, dtype)
        elif name in COMPARISONS:
            result = _compared(COMPARISONS[name].function, operands)
        elif name in REDUCTIONS:
            function = partial(REDUCTIONS[name], axis=axis, keepdims=keep_dims)
            result = _combined(name, function, np.asarray(operands[0]), dtype)
        elif name in SCANS:
            function = partial(SCANS[name], axis=axis)
            result = _combined(name, function, np.asarray(operands[0]), dtype)
        elif name == "softmax":
            function = partial(_softmax, axis=-1 if axis is None else axis)
            result = _evaluated(function, operands, dtype)
        else:
            result = _moved(name, operands, dtype, shape)
    # The result of a transposed view has the order of its operand in numpy's memory.
    return np.asarray(result, order="C")


def _softmax(x: Array, axis: int) -> Array:
    # The maximum is subtracted from every score: no exponential overflows, and the quotients do not
    # change.
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _moved(
    name: str, operands: Sequence[Array | float], dtype: DType, shape: Sequence[int] | None
) -> Array:
    arrays = [np.asarray(operand) for operand in operands]
    match name:
        case "where":
            return np.where(arrays[0], *_elements(operands[1:], dtype))
        case "full":
            assert shape is not None
            return np.full(shape, element(arrays[0], dtype))
        case "arange":
            # `infer` has refused numbers that the type does not have exactly: nothing is rounded
            # here.
            return np.arange(int(arrays[0]), int(arrays[1])).astype(dtype.numpy)
        case "cast":
            return converted(arrays[0], dtype)
        case "trans":
            return np.array(arrays[0].T, order="C")
        case _:
            return np.concatenate([array.reshape(-1) for array in arrays])


def _evaluated(
    function: Callable[..., Array], operands: Sequence[Array | float], dtype: DType
) -> Array:
    arrays = _elements(operands, dtype)
    if not dtype.is_floating_point:
        return np.asarray(function(*arrays), dtype.numpy)
    # By name: two types are compared in Python, field by field.
    if function in _ROUNDED_ONCE and dtype.name != float64.name:
        # The sum or product of float32 numbers is correctly rounded to float32: it has the bits of
        # the detour through float64, NaN included, in a seventh of the time.
        if dtype.name == float32.name:
            return np.asarray(function(*arrays))
        singles = (array.astype(float32.numpy, copy=False) for array in arrays)
        return rounded(np.asarray(function(*singles)), dtype)
    # float64 has more than twice the digits of float32, so for + - * / and sqrt the second rounding
    # gives the correctly rounded float32 (S. A. Figueroa, When is double rounding innocuous?,
    # 1995).
    exact = np.asarray(function(*(array.astype(np.float64) for array in arrays)))
    if dtype == float64:
        return exact
    return rounded(exact.astype(float32.numpy), dtype)


def _elements(operands: Sequence[Array | float], dtype: DType) -> list[Array]:
    """The operands as arrays; a number takes the type of the elements beside it."""
    return [each if isinstance(each, np.ndarray) else element(each, dtype) for each in operands]


def _compared(function: Callable[..., Array], operands: Sequence[Array | float]) -> Array:
    dtype = from_numpy(next(each.dtype for each in operands if isinstance(each, np.ndarray)))
    # NaN is unequal to everything.
    wide = np.dtype(np.float64) if dtype.is_floating_point else dtype.numpy
    return np.asarray(function(*(each.astype(wide) for each in _elements(operands, dtype))))


def _combined(name: str, function: Callable[..., Array], array: Array, dtype: DType) -> Array:
    if name in _POSITIONS:
        # float64 holds every element exactly, also of types that numpy cannot compare.
        plain = array if array.dtype.kind in "iub" else array.astype(np.float64)
        return np.asarray(function(plain)).astype(dtype.numpy)
    # The engine's adder is wide: a sum is rounded once, when it is converted to its type.
    if dtype.is_floating_point:
        return rounded(np.asarray(function(array.astype(np.float64))), dtype)
    return np.asarray(function(array.astype(dtype.numpy))).astype(dtype.numpy)
