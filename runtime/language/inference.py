"""The results of the vector engine: shape, type and, where the operands have elements, these.

Operands have one type, which is that of the result; only the mask of `where` is of another, bool.
bool has maxima, minima, sums, comparisons, bitwise operations and copies, and no other arithmetic.
"""

from collections.abc import Sequence
from numbers import Real
from operator import index
from typing import NamedTuple, SupportsIndex

import numpy as np

from runtime.core.dtypes import DType, boolean, int8, int32, uint8
from runtime.core.errors import nearest
from runtime.language.functions import COMPARISONS, ELEMENTWISE, MOVES, NAMES, SCANS
from runtime.language.operations import compute
from runtime.language.running import NO_OPTIONS, MathOptions
from runtime.language.shapes import check_apart, checked_out
from runtime.language.value import Array, Shape, Value, check_exists

_WIDENED = {int8, uint8, boolean}
"""The types whose sums are i32: sums of bytes soon leave the range of a byte."""


def infer(
    name: str, operands: Sequence[Value | float], options: MathOptions = NO_OPTIONS
) -> tuple[Shape, DType]:
    """Shape and type of the result of an operation; `TypeError` or `ValueError` if it is not
    defined. The operands of `arange` are two numbers.
    """
    axis, keep_dims, dtype, shape = options
    if name not in NAMES:
        raise ValueError(f"the vector engine has no operation {name!r}{nearest(name, NAMES)}")
    if name in ("full", "arange"):
        return _full(operands[0], dtype, shape) if name == "full" else _arange(operands, dtype)
    values = _values(name, operands)
    if name in MOVES:
        return _moved(name, values, dtype)
    if name == "where":
        return _where(operands, values)
    common = _common_type(name, values)
    if name in ELEMENTWISE:
        return _elementwise(name, operands, values, common)
    if name in COMPARISONS:
        return _broadcast(name, operands, values, common), boolean
    return _along_axis(name, values[0].shape, common, axis, keep_dims=keep_dims)


def check_over(name: str, operands: Sequence[Value | float], out: Value) -> None:
    """`ValueError` for an `out` that shares bytes with operands, but is none of them.

    An elementwise operation may write over an operand: it has read an element when it writes it.
    """
    is_elementwise = name in ELEMENTWISE or name in COMPARISONS or name == "where"
    values = [each for each in operands if isinstance(each, Value)]
    apart = [each for each in values if not (is_elementwise and each.operand == out.operand)]
    check_apart(out, apart, name)


def _values(name: str, operands: Sequence[Value | float]) -> list[Value]:
    values: list[Value] = []
    for operand in operands:
        if isinstance(operand, Value):
            check_exists(operand, name)
            values.append(operand)
        elif not isinstance(operand, Real):  # pyright: ignore[reportUnnecessaryIsInstance] - kernels are not type-checked
            none = operand is None  # pyright: ignore[reportUnnecessaryComparison] - the same
            advice = "; compare with None by `is`" if none else ""
            raise TypeError(
                f"{name}: {_described(operand)} is neither a value in TCM, such as tl.load "
                f"returns, nor a number{advice}"
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
        raise TypeError(f"{name}: not defined for {dtype.name}, only for integers and bool")
    if not ELEMENTWISE[name].bools and dtype.name == boolean.name:
        raise TypeError(
            f"{name}: not defined for bool, which has &, |, ^, ~, maximum and minimum; convert "
            "with x.to(tl.int32)"
        )
    return _broadcast(name, operands, values, dtype), dtype


def _moved(name: str, values: Sequence[Value], dtype: object) -> tuple[Shape, DType]:
    if name == "cast":
        return values[0].shape, _type("cast", dtype)
    if name == "bitcast":
        own, target = values[0].dtype, _type("bitcast", dtype)
        if own.itemsize != target.itemsize or boolean.name in (own.name, target.name):
            raise TypeError(
                f"bitcast of {own.name} to {target.name}: the elements have {own.itemsize} and "
                f"{target.itemsize} bytes, and it takes the same bits as another type of numbers"
            )
        return values[0].shape, target
    common = _common_type(name, values)
    if name == "trans":
        return _transposed(values[0].shape), common
    return (sum(value.numel for value in values),), common


def _where(operands: Sequence[Value | float], values: Sequence[Value]) -> tuple[Shape, DType]:
    mask, *choices = operands
    if not isinstance(mask, Value) or mask.dtype.name != boolean.name:
        given = f"of {mask.dtype.name}" if isinstance(mask, Value) else _described(mask)
        raise TypeError(f"where: the mask is {given}; it must be a value of bools, as x > 0 is")
    chosen = [each for each in choices if isinstance(each, Value)]
    if not chosen:
        raise TypeError(
            "where: both choices are numbers, which have no element type; make one a value, with "
            "tl.full or mask.to(dtype)"
        )
    dtype = _common_type("where", chosen)
    return _broadcast("where", choices, values, dtype), dtype


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
    # A float of a floating-point type is not read: it may be open while a kernel is recorded.
    if not (known.is_floating_point and isinstance(number, float)):
        _check_held("full", float(number), known, f"for a value of {known.name}")
    return shape, known


def _arange(operands: Sequence[object], dtype: DType | None) -> tuple[Shape, DType]:
    known, ends = _type("arange", dtype), list[int]()
    for name, each in zip(("start", "stop"), operands, strict=True):
        if isinstance(each, Value) or not isinstance(each, SupportsIndex):
            raise TypeError(f"arange: {name} {_described(each)} is not an integer")
        ends.append(index(each))
    start, stop = ends
    if stop < start:
        raise ValueError(f"arange: stop {stop} is below start {start}")
    if known.name == boolean.name:
        raise TypeError("arange: not defined for bool; compare a range of tl.int32 instead")
    for each in (start, stop - 1) if stop > start else ():
        if not known.counts(each):
            raise ValueError(f"arange: {each} is not exact in {known.name}; take a wider type")
    return (stop - start,), known


def _described(given: object) -> str:
    return f"{type(given).__name__} {given!r}"


def _type(name: str, dtype: object) -> DType:
    if not isinstance(dtype, DType):
        raise TypeError(f"{name}: {dtype!r} is not an element type such as tl.float32")
    return dtype


def _check_floating(name: str, dtype: DType) -> None:
    if not dtype.is_floating_point:
        raise TypeError(f"{name}: not defined for {dtype.name}, only for floating-point values")


def _check_held(name: str, number: float, dtype: DType, use: str) -> None:
    if dtype.is_floating_point:
        return
    if not (np.isfinite(number) and dtype.holds(number)):
        raise TypeError(f"{name}: {number} {use} is not an {dtype.name} itself")
    # The engine gets numbers as float64, and so does the op log.
    if int(float(number)) != number:
        raise TypeError(
            f"{name}: {number} {use} is beyond 2^53; the engine takes numbers as float64"
        )


def _along_axis(
    name: str, shape: Shape, dtype: DType, axis: object, *, keep_dims: bool
) -> tuple[Shape, DType]:
    if name == "softmax":
        _check_floating(name, dtype)
        _reduced(name, shape, -1 if axis is None else axis, keep_dims=False)
        return shape, dtype
    widened = int32 if name in ("sum", "cumsum") and dtype in _WIDENED else dtype
    if name in SCANS:
        _checked_axis(name, shape, axis)
        return shape, widened
    result = int32 if name in ("argmax", "argmin") else widened
    return _reduced(name, shape, axis, keep_dims=keep_dims), result


def _checked_axis(name: str, shape: Shape, axis: object) -> int:
    """The number of an axis, counted from the first."""
    if not isinstance(axis, int) or isinstance(axis, bool):
        raise TypeError(f"{name}: axis {axis!r} is not an integer")
    if not -len(shape) <= axis < len(shape):
        known = f"axes are {-len(shape)} to {len(shape) - 1}" if shape else "it has no axis"
        raise ValueError(f"{name}: axis {axis} does not exist in a value of shape {shape}: {known}")
    return axis % len(shape)


def _reduced(name: str, shape: Shape, axis: object, *, keep_dims: bool) -> Shape:
    if axis is None:
        axes = range(len(shape))
    else:
        along = _checked_axis(name, shape, axis)
        axes = range(along, along + 1)
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


def result_elements(
    name: str,
    operands: Sequence[Value | float],
    dtype: DType,
    *,
    axis: int | None = None,
    keep_dims: bool = False,
    shape: Sequence[int] | None = None,
) -> Array | None:
    """`compute` of the elements of values; None if one has none, as in a run without data."""
    arrays = [each.data if isinstance(each, Value) else each for each in operands]
    known = [each for each in arrays if each is not None]
    if len(known) < len(arrays):
        return None
    return compute(name, known, dtype, axis=axis, keep_dims=keep_dims, shape=shape)


class MathCall(NamedTuple):
    """An operation of the vector engine that is defined for its operands: its result has the shape
    `whole` and the type `dtype`, and is a new value, or `out`.
    """

    name: str
    operands: Sequence[Value | float]
    whole: Shape
    dtype: DType
    options: MathOptions = NO_OPTIONS
    out: Value | None = None

    @classmethod
    def checked(
        cls,
        name: str,
        operands: Sequence[Value | float],
        options: MathOptions,
        out: Value | None,
    ) -> "MathCall":
        """An operation; the errors are those of `infer`, of `checked_out` and of `check_over`."""
        whole = infer(name, operands, options)
        if out is not None:
            check_over(name, operands, checked_out(out, *whole, name))
        return cls(name, operands, *whole, options, out)

    def elements(self) -> Array | None:
        """The elements of the result; see `result_elements`."""
        return result_elements(
            self.name,
            self.operands,
            self.dtype,
            axis=self.options.axis,
            keep_dims=self.options.keep_dims,
            shape=self.options.shape,
        )
