"""The arithmetic of the vector engine: the elements of a result by the name of the operation.

Floating-point results are those of an engine that evaluates an operation exactly, rounds to
float32, and then rounds to the type of the operands: numpy computes in float64, which gives the
same float32 on every machine. f64 is rounded once, by numpy. A sum is rounded once, to its type,
and so is each element of a running sum. Integers keep their type and wrap round; only sums of i8,
u8 and bool widen, to i32. A Python number takes the type of the value operand.

f8e4m3 and f8e5m2 saturate: a number beyond the greatest of the type, and an infinity, becomes the
greatest with its sign; NaN stays NaN. That is the saturating mode of the *OCP 8-bit Floating Point
Specification* (OFP8, revision 1.0, section 5.2). All other floating-point types have infinities.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from runtime.core.dtypes import DType, boolean, float32, float64, from_numpy
from runtime.language.functions import COMPARISONS, ELEMENTWISE, REDUCTIONS, SCANS, Array

_ROUNDED_ONCE = frozenset({np.add, np.subtract, np.multiply})
"""Functions whose exact result numpy rounds once, to the type of its operands."""

_POSITIONS = frozenset({"argmax", "argmin"})
"""Reductions whose result is an index, and not one of the elements or their sum."""


Operands = Sequence[Array | float]


def compute(
    name: str,
    operands: Operands,
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
        return evaluator(name, dtype, axis=axis, keep_dims=keep_dims, shape=shape)(operands)


def evaluator(
    name: str,
    dtype: DType,
    *,
    axis: int | None = None,
    keep_dims: bool = False,
    shape: Sequence[int] | None = None,
) -> Callable[[Operands], Array]:
    """The arithmetic of `compute` for operations of one kind, where numpy ignores errors."""
    if name in ELEMENTWISE:
        return _elementwise(ELEMENTWISE[name].function, dtype)
    if name in COMPARISONS:
        return partial(_compared, COMPARISONS[name].function)
    if name in REDUCTIONS:
        function = partial(REDUCTIONS[name], axis=axis, keepdims=keep_dims)
        return partial(_combined, name, function, dtype)
    if name in SCANS:
        return partial(_combined, name, partial(SCANS[name], axis=axis), dtype)
    if name == "softmax":
        return _elementwise(partial(_softmax, axis=-1 if axis is None else axis), dtype)
    return partial(_moved, name, dtype, shape)


def _softmax(x: Array, axis: int) -> Array:
    # The maximum is subtracted from every score: no exponential overflows, and the quotients do not
    # change.
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _moved(name: str, dtype: DType, shape: Sequence[int] | None, operands: Operands) -> Array:
    arrays = [np.asarray(operand) for operand in operands]
    match name:
        case "where":
            return _row_major(np.where(arrays[0], *_elements(operands[1:], dtype)))
        case "full":
            assert shape is not None
            return np.full(shape, element(arrays[0], dtype))
        case "arange":
            # `infer` has refused numbers that the type does not have exactly: nothing is rounded
            # here.
            return np.arange(int(arrays[0]), int(arrays[1])).astype(dtype.numpy)
        case "cast" | "bitcast":
            return (converted if name == "cast" else _same_bits)(arrays[0], dtype)
        case "trans":
            return np.array(arrays[0].T, order="C")
        case _:
            return np.concatenate([array.reshape(-1) for array in arrays])


def _same_bits(array: Array, dtype: DType) -> Array:
    return np.ascontiguousarray(array).view(dtype.numpy)


def _elementwise(function: Callable[..., Array], dtype: DType) -> Callable[[Operands], Array]:
    """Evaluates a function of corresponding elements, or of rows of them."""
    if not dtype.is_floating_point:
        return partial(_of_integers, function, dtype)
    # By name: two types are compared in Python, field by field.
    if function in _ROUNDED_ONCE and dtype.name != float64.name:
        # The sum or product of float32 numbers is correctly rounded to float32: it has the bits of
        # the detour through float64, NaN included, in a seventh of the time.
        of = _of_singles if dtype.name == float32.name else _through_singles
        return partial(of, function, dtype)
    # float64 has more than twice the digits of float32, so for + - * / and sqrt the second rounding
    # gives the correctly rounded float32 (S. A. Figueroa, When is double rounding innocuous?,
    # 1995).
    return partial(_through_doubles, function, dtype)


def _of_integers(function: Callable[..., Array], dtype: DType, operands: Operands) -> Array:
    return _row_major(np.asarray(function(*_elements(operands, dtype)), dtype.numpy))


def _of_singles(function: Callable[..., Array], dtype: DType, operands: Operands) -> Array:
    return _row_major(function(*_elements(operands, dtype)))


def _through_singles(function: Callable[..., Array], dtype: DType, operands: Operands) -> Array:
    singles = (each.astype(float32.numpy, copy=False) for each in _elements(operands, dtype))
    return _row_major(rounded(np.asarray(function(*singles)), dtype))


def _through_doubles(function: Callable[..., Array], dtype: DType, operands: Operands) -> Array:
    doubles = [each.astype(np.float64) for each in _elements(operands, dtype)]
    exact = np.asarray(function(*doubles))
    if dtype.name == float64.name:
        return _row_major(exact)
    return _row_major(rounded(exact.astype(float32.numpy), dtype))


def _row_major(result: Array) -> Array:
    # The result of a transposed view has the order of its operand in numpy's memory.
    return np.asarray(result, order="C")


def _elements(operands: Operands, dtype: DType) -> list[Array]:
    """The operands as arrays; a number takes the type of the elements beside it."""
    return [each if isinstance(each, np.ndarray) else element(each, dtype) for each in operands]


def _compared(function: Callable[..., Array], operands: Operands) -> Array:
    dtype = from_numpy(next(each.dtype for each in operands if isinstance(each, np.ndarray)))
    # NaN is unequal to everything.
    wide = np.dtype(np.float64) if dtype.is_floating_point else dtype.numpy
    return _row_major(function(*(each.astype(wide) for each in _elements(operands, dtype))))


def _combined(name: str, function: Callable[..., Array], dtype: DType, operands: Operands) -> Array:
    array = np.asarray(operands[0])
    if name in _POSITIONS:
        # float64 holds every element exactly, also of types that numpy cannot compare.
        plain = array if array.dtype.kind in "iub" else array.astype(np.float64)
        return _row_major(np.asarray(function(plain)).astype(dtype.numpy))
    # The engine's adder is wide: a sum is rounded once, when it is converted to its type.
    if dtype.is_floating_point:
        return _row_major(rounded(np.asarray(function(array.astype(np.float64))), dtype))
    return _row_major(np.asarray(function(array.astype(dtype.numpy))).astype(dtype.numpy))


def rounded(exact: Array, dtype: DType) -> Array:
    """Numbers in a floating-point type, rounded once; not copied if they are of the type."""
    # An element of the type itself is no conversion: an infinity of f8e5m2 stays an infinity.
    if dtype.saturates and exact.dtype != dtype.numpy:
        # float64 has every element of the other types but some int64, far beyond saturation.
        wide = exact.astype(np.float64)
        # Both functions return NaN where an operand is NaN, so NaN stays NaN.
        exact = np.minimum(np.maximum(wide, -dtype.greatest), dtype.greatest)
    return exact.astype(dtype.numpy, copy=False)


def element(number: Array | float, dtype: DType) -> Array:
    """A Python number as an element of a type, as an array without axes."""
    array = np.asarray(number)
    return rounded(array, dtype) if dtype.is_floating_point else array.astype(dtype.numpy)


def converted(array: Array, dtype: DType) -> Array:
    """A copy in another type, rounded once.

    Floating-point to integer drops the fraction and saturates, NaN becomes 0; integer to integer
    wraps round; bool is whether an element is not 0.
    """
    # numpy wraps integers; for floats to integers its result outside the range is undefined.
    if dtype.is_floating_point:
        return np.array(rounded(array, dtype), order="C")
    if dtype == boolean or array.dtype.kind in "iub":
        return np.array(array.astype(dtype.numpy), order="C")
    limits = np.iinfo(dtype.numpy.name)
    whole = np.nan_to_num(np.trunc(array.astype(np.float64)), posinf=np.inf, neginf=-np.inf)
    # float64 does not hold the greatest int64, only the number after it, to which it rounds.
    above, below = whole >= float(limits.max), whole < float(limits.min)
    inside = np.where(above | below, 0, whole).astype(dtype.numpy)
    saturated = np.where(above, limits.max, np.where(below, limits.min, inside))
    return np.array(saturated.astype(dtype.numpy), order="C")
