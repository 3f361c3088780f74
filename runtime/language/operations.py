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

from runtime.core.dtypes import DType, boolean, float32, float64
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


def converted(array: Array, dtype: DType) -> Array:
    """A copy in another type, rounded once.

    Floating-point to integer drops the fraction and saturates, NaN becomes 0; integer to integer
    wraps round; bool is whether an element is not 0.
    """
    # numpy wraps integers; for floats to integers its result outside the range is undefined.
    if dtype.is_floating_point or dtype == boolean or array.dtype.kind in "iub":
        return np.array(array.astype(dtype.numpy), order="C")
    limits = np.iinfo(dtype.numpy.name)
    whole = np.nan_to_num(np.trunc(array.astype(np.float64)), posinf=np.inf, neginf=-np.inf)
    # float64 does not hold the greatest int64, only the number after it, to which it rounds.
    above, below = whole >= float(limits.max), whole < float(limits.min)
    inside = np.where(above | below, 0, whole).astype(dtype.numpy)
    saturated = np.where(above, limits.max, np.where(below, limits.min, inside))
    return np.array(saturated.astype(dtype.numpy), order="C")


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _moved(
    name: str, operands: Sequence[Array | float], dtype: DType, shape: Sequence[int] | None
) -> Array:
    arrays = [np.asarray(operand) for operand in operands]
    match name:
        case "where":
            mask, *choices = arrays
            return np.where(mask, *(choice.astype(dtype.numpy, copy=False) for choice in choices))
        case "full":
            assert shape is not None
            return np.full(shape, arrays[0].astype(dtype.numpy))
        case "arange":
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
    arrays: list[Array] = [
        operand if isinstance(operand, np.ndarray) else np.asarray(operand).astype(dtype.numpy)
        for operand in operands
    ]
    if not dtype.is_floating_point:
        return np.asarray(function(*arrays), dtype.numpy)
    # By name: two types are compared in Python, field by field.
    if function in _ROUNDED_ONCE and dtype.name != float64.name:
        # The sum or product of float32 numbers is correctly rounded to float32: it has the bits of
        # the detour through float64, NaN included, in a seventh of the time.
        if dtype.name == float32.name:
            return np.asarray(function(*arrays))
        singles = (array.astype(float32.numpy, copy=False) for array in arrays)
        return np.asarray(function(*singles)).astype(dtype.numpy, copy=False)
    # float64 has more than twice the digits of float32, so for + - * / and sqrt the second rounding
    # gives the correctly rounded float32 (S. A. Figueroa, When is double rounding innocuous?,
    # 1995).
    exact = np.asarray(function(*(array.astype(np.float64) for array in arrays)))
    if dtype == float64:
        return exact
    return exact.astype(float32.numpy).astype(dtype.numpy, copy=False)


def _compared(function: Callable[..., Array], operands: Sequence[Array | float]) -> Array:
    (dtype,) = {operand.dtype for operand in operands if isinstance(operand, np.ndarray)}
    # A number takes the type of the elements, as in arithmetic; NaN is unequal to everything.
    arrays = [np.asarray(operand).astype(dtype) for operand in operands]
    wide = dtype if dtype.kind in "iub" else np.dtype(np.float64)
    return np.asarray(function(*(array.astype(wide) for array in arrays)))


def _combined(name: str, function: Callable[..., Array], array: Array, dtype: DType) -> Array:
    if name in _POSITIONS:
        # float64 holds every element exactly, also of types that numpy cannot compare.
        plain = array if array.dtype.kind in "iub" else array.astype(np.float64)
        return np.asarray(function(plain)).astype(dtype.numpy)
    # The engine's adder is wide: a sum is rounded once, when it is converted to its type.
    wide = np.float64 if dtype.is_floating_point else dtype.numpy
    return np.asarray(function(array.astype(wide))).astype(dtype.numpy)
