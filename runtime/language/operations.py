"""The arithmetic of the vector engine by operation name: the rules for operands, and the results.

Floating-point results are those of an engine that evaluates an operation exactly, rounds to
float32, and then rounds to the type of the operands: numpy computes in float64, which gives the
same float32 on every machine. f64 is rounded once, by numpy. A sum is rounded once, to its type.
Integers keep their type and wrap round; only sums of i8, u8 and bool widen, to i32. bool has
maxima, minima, sums, bitwise operations and copies, and no other arithmetic. A Python number takes
the type of the value operand.
"""

from collections.abc import Callable, Sequence
from functools import partial
from numbers import Real
from typing import NamedTuple

import numpy as np

from runtime.core.dtypes import DType, boolean, float32, float64, int8, int32, uint8
from runtime.core.errors import nearest
from runtime.language.shapes import check_apart
from runtime.language.value import Array, Shape, Value, check_exists


def _fma(a: Array, b: Array, c: Array) -> Array:
    return a * b + c


def _clamp(x: Array, low: Array, high: Array) -> Array:
    return np.minimum(np.maximum(x, low), high)


def _relu(x: Array) -> Array:
    return np.maximum(x, np.zeros_like(x))


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _silu(x: Array) -> Array:
    return x * _sigmoid(x)


def _gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * (x * x * x))))


def _softmax(x: Array, axis: int) -> Array:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


class Elementwise(NamedTuple):
    """An operation on corresponding elements, broadcast as in numpy, and the kinds of types for
    which it is defined.
    """

    function: Callable[..., Array]
    operands: int
    integers: bool = True
    floats: bool = True


ELEMENTWISE = {
    "add": Elementwise(np.add, 2),
    "sub": Elementwise(np.subtract, 2),
    "mul": Elementwise(np.multiply, 2),
    "div": Elementwise(np.divide, 2, integers=False),
    "maximum": Elementwise(np.maximum, 2),
    "minimum": Elementwise(np.minimum, 2),
    "bitwise_and": Elementwise(np.bitwise_and, 2, floats=False),
    "bitwise_or": Elementwise(np.bitwise_or, 2, floats=False),
    "bitwise_xor": Elementwise(np.bitwise_xor, 2, floats=False),
    "fma": Elementwise(_fma, 3),
    "clamp": Elementwise(_clamp, 3),
    "abs": Elementwise(np.abs, 1),
    "relu": Elementwise(_relu, 1),
    "exp": Elementwise(np.exp, 1, integers=False),
    "log": Elementwise(np.log, 1, integers=False),
    "sqrt": Elementwise(np.sqrt, 1, integers=False),
    "sin": Elementwise(np.sin, 1, integers=False),
    "cos": Elementwise(np.cos, 1, integers=False),
    "tanh": Elementwise(np.tanh, 1, integers=False),
    "sigmoid": Elementwise(_sigmoid, 1, integers=False),
    "gelu": Elementwise(_gelu, 1, integers=False),
    "silu": Elementwise(_silu, 1, integers=False),
}
"""Elementwise operations by name."""

COMPARISONS: dict[str, Callable[..., Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
"""Elementwise comparisons, whose result is of type bool. Only the operators of tensors use them:
the language has none.
"""

_ROUNDED_ONCE = frozenset({np.add, np.subtract, np.multiply})
"""Functions whose exact result numpy rounds once, to the type of its operands."""

REDUCTIONS = frozenset({"sum", "max", "min"})
"""Operations that combine the elements along an axis into one."""

ACTIVATIONS = ("relu", "gelu", "silu", "sigmoid", "tanh")
"""The elementwise operations that may follow a matrix product."""

_OF_BOOL = frozenset({"maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"})

NAMES = (
    frozenset(ELEMENTWISE)
    | frozenset(COMPARISONS)
    | REDUCTIONS
    | {"softmax", "trans", "cat", "cast", "full"}
)
"""All operations of the vector engine."""


def infer(
    name: str,
    operands: Sequence[Value | float],
    *,
    axis: int | None = None,
    keep_dims: bool = False,
    dtype: DType | None = None,
    shape: Shape | None = None,
) -> tuple[Shape, DType]:
    """Shape and type of the result of an operation; `TypeError` or `ValueError` if it is not
    defined.

    `axis` and `keep_dims` are those of a reduction, `dtype` is the type of a cast, `shape` and
    `dtype` are those of `full`.
    """
    if name not in NAMES:
        raise ValueError(f"the vector engine has no operation {name!r}{nearest(name, NAMES)}")
    if name == "full":
        return _full(operands[0], dtype, shape)
    values = _values(name, operands)
    if name == "cast":
        return values[0].shape, _type("cast", dtype)
    common = _common_type(name, values)
    if name in ELEMENTWISE:
        return _elementwise(name, operands, values, common)
    if name in COMPARISONS:
        return _broadcast(name, operands, values, common), boolean
    if name in REDUCTIONS or name == "softmax":
        return _along_axis(name, values[0].shape, common, axis, keep_dims=keep_dims)
    return _transposed(values[0].shape) if name == "trans" else (
        sum(value.numel for value in values),
    ), common


def check_over(name: str, operands: Sequence[Value | float], out: Value) -> None:
    """`ValueError` for an `out` that shares bytes with operands, but is none of them.

    An elementwise operation may write over an operand: it has read an element when it writes it.
    """
    is_elementwise = name in ELEMENTWISE or name in COMPARISONS
    values = [each for each in operands if isinstance(each, Value)]
    apart = [each for each in values if not (is_elementwise and each.operand == out.operand)]
    check_apart(out, apart, name)


def compute(
    name: str,
    operands: Sequence[Array | float],
    dtype: DType,
    *,
    axis: int | None = None,
    keep_dims: bool = False,
    shape: Shape | None = None,
) -> Array:
    """The elements of the result, a new array of `dtype`, row-major; operands are as `infer`
    accepts them.

    `dtype` is the type that `infer` returned, `shape` the shape of `full`.
    """
    with np.errstate(all="ignore"):
        if name in ELEMENTWISE:
            return _evaluated(ELEMENTWISE[name].function, operands, dtype)
        if name in COMPARISONS:
            return _compared(COMPARISONS[name], operands)
        if name in REDUCTIONS:
            return _reduce(name, np.asarray(operands[0]), dtype, axis, keep_dims=keep_dims)
        if name == "softmax":
            return _evaluated(partial(_softmax, axis=-1 if axis is None else axis), operands, dtype)
        return _moved(name, operands, dtype, shape)


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


def _moved(
    name: str, operands: Sequence[Array | float], dtype: DType, shape: Shape | None
) -> Array:
    arrays = [np.asarray(operand) for operand in operands]
    match name:
        case "full":
            assert shape is not None
            return np.full(shape, arrays[0].astype(dtype.numpy))
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


def _reduce(name: str, array: Array, dtype: DType, axis: int | None, *, keep_dims: bool) -> Array:
    # The engine's adder is wide: a sum is rounded once, when it is converted to its type.
    wide = np.float64 if dtype.is_floating_point else dtype.numpy
    function = {"sum": np.sum, "max": np.max, "min": np.min}[name]
    return np.asarray(function(array.astype(wide), axis=axis, keepdims=keep_dims)).astype(
        dtype.numpy
    )


def _values(name: str, operands: Sequence[Value | float]) -> list[Value]:
    values: list[Value] = []
    for operand in operands:
        if isinstance(operand, Value):
            check_exists(operand, name)
            values.append(operand)
        elif not isinstance(operand, Real):  # pyright: ignore[reportUnnecessaryIsInstance] - kernels are not type-checked
            given = f"{type(operand).__name__} {operand!r}"
            raise TypeError(
                f"{name}: {given} is neither a value in TCM, such as tl.load returns, nor a number"
            )
    if not values:
        raise TypeError(f"{name}: operands have types none; one of them must be a value in TCM")
    return values


def _common_type(name: str, values: Sequence[Value]) -> DType:
    dtypes = {value.dtype.name for value in values}
    if len(dtypes) != 1:
        raise TypeError(
            f"{name}: operands have types {', '.join(sorted(dtypes))}; they must be equal: "
            "convert with x.to(dtype)"
        )
    return values[0].dtype


def _elementwise(
    name: str, operands: Sequence[Value | float], values: Sequence[Value], dtype: DType
) -> tuple[Shape, DType]:
    if not ELEMENTWISE[name].integers:
        _check_floating(name, dtype)
    if not ELEMENTWISE[name].floats and dtype.is_floating_point:
        raise TypeError(f"{name}: not defined for {dtype.name}, only for integers")
    if name not in _OF_BOOL and dtype.name == boolean.name:
        raise TypeError(
            f"{name}: not defined for bool, which has maximum and minimum; convert with "
            "x.to(tl.int32)"
        )
    return _broadcast(name, operands, values, dtype), dtype


def _broadcast(
    name: str, operands: Sequence[Value | float], values: Sequence[Value], dtype: DType
) -> Shape:
    """The common shape; a number must be one of the elements' type."""
    for operand in operands:
        if not isinstance(operand, Value):
            _check_held(name, operand, dtype, f"beside a value of {dtype.name}")
    shape = values[0].shape
    if all(value.shape == shape for value in values):
        return shape
    try:
        return np.broadcast_shapes(*(value.shape for value in values))
    except ValueError:
        shapes = " and ".join(str(value.shape) for value in values)
        raise ValueError(
            f"{name}: shapes {shapes} do not broadcast: from the last axis on, lengths must be "
            "equal or 1"
        ) from None


def _full(number: object, dtype: DType | None, shape: Shape | None) -> tuple[Shape, DType]:
    assert shape is not None
    known = _type("full", dtype)
    if not isinstance(number, Real):
        raise TypeError(f"full: {type(number).__name__} {number!r} is not a number")
    _check_held("full", float(number), known, f"for a value of {known.name}")
    return shape, known


def _type(name: str, dtype: object) -> DType:
    if not isinstance(dtype, DType):
        raise TypeError(f"{name}: {dtype!r} is not an element type such as tl.float32")
    return dtype


def _check_floating(name: str, dtype: DType) -> None:
    if not dtype.is_floating_point:
        raise TypeError(f"{name}: not defined for {dtype.name}, only for floating-point values")


def _check_held(name: str, number: float, dtype: DType, where: str) -> None:
    if dtype.is_floating_point:
        return
    if not (np.isfinite(number) and dtype.holds(number)):
        raise TypeError(f"{name}: {number} {where} is not an {dtype.name} itself")
    # The engine gets numbers as float64, and so does the op log.
    if int(float(number)) != number:
        raise TypeError(
            f"{name}: {number} {where} is beyond 2^53; the engine takes numbers as float64"
        )


def _along_axis(
    name: str, shape: Shape, dtype: DType, axis: object, *, keep_dims: bool
) -> tuple[Shape, DType]:
    if name == "softmax":
        _check_floating(name, dtype)
        _reduced(name, shape, -1 if axis is None else axis, keep_dims=False)
        return shape, dtype
    # Sums of bytes soon leave the range of a byte, so the engine accumulates in i32.
    widened = int32 if name == "sum" and dtype in (int8, uint8, boolean) else dtype
    return _reduced(name, shape, axis, keep_dims=keep_dims), widened


def _reduced(name: str, shape: Shape, axis: object, *, keep_dims: bool) -> Shape:
    if axis is None:
        axes = range(len(shape))
    elif not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"{name}: axis {axis!r} is not an integer")
    elif not -len(shape) <= axis < len(shape):
        known = f"axes are {-len(shape)} to {len(shape) - 1}" if shape else "it has no axis"
        raise ValueError(f"{name}: axis {axis} does not exist in a value of shape {shape}: {known}")
    else:
        axes = range(axis % len(shape), axis % len(shape) + 1)
    # A sum without elements is 0; a maximum or minimum has no neutral element in every type.
    if name != "sum" and any(shape[each] == 0 for each in axes):
        raise ValueError(f"{name}: no element along axis {axis} of a value of shape {shape}")
    if keep_dims:
        return tuple(1 if each in axes else length for each, length in enumerate(shape))
    return tuple(length for each, length in enumerate(shape) if each not in axes)


def _transposed(shape: Shape) -> Shape:
    if len(shape) != 2:
        raise ValueError(
            f"trans: a value of shape {shape} has {len(shape)} axes; only a matrix, of 2, is "
            "transposed"
        )
    return shape[::-1]
