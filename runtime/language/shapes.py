"""Checks of the arguments that a kernel passes to the language: kernels are not type-checked before
they run.
"""

from collections.abc import Iterable
from math import prod
from operator import index
from typing import SupportsIndex

from runtime.core.dtypes import DType
from runtime.core.strided_axes import MOST_AXES, descriptor_axes
from runtime.language.value import Pointer, Shape, Value, check_exists, row_major


def checked_shape(shape: Shape | int) -> Shape:
    """A shape as a tuple; a single length is a shape with one axis."""
    whole = _integers(shape, "shape", "a shape is an integer or a tuple of integers")
    if any(length < 0 for length in whole):
        raise ValueError(f"shape {whole}: a length cannot be negative")
    return whole


def checked_strides(strides: tuple[int, ...] | None, shape: Shape) -> tuple[int, ...]:
    """The strides of a block of memory in elements; None is row-major without gaps."""
    if strides is None:
        return row_major(shape)
    steps = _integers(strides, "strides", "strides are integers, one for each axis")
    if any(step < 0 for step in steps):
        raise ValueError(f"strides {steps}: a DMA descriptor has no negative pitches")
    if len(steps) != len(shape):
        raise ValueError(f"strides {strides} with shape {shape}: one stride for each axis")
    # From the smallest stride on, each axis must step over the elements of those before it.
    span = 1
    for stride, length in sorted(zip(steps, shape, strict=True)):
        if length > 1 and stride < span and 0 not in shape:
            raise ValueError(
                f"strides {strides} with shape {shape}: elements overlap; strides count elements, "
                "and for a block of rows they are (row pitch, 1)"
            )
        span += (length - 1) * stride
    axes = descriptor_axes(shape, steps)
    if len(axes) > MOST_AXES:
        raise ValueError(
            f"strides {strides} with shape {shape}: a DMA descriptor holds rows, at a pitch, in "
            f"planes at a second pitch; this block has {len(axes) - 1} pitches"
        )
    return steps


def checked_row_strides(strides: tuple[int, ...] | None, shape: Shape) -> tuple[int, ...]:
    """The pitch of rows that are blocks of `shape`, and the strides of each, in elements.

    Rows may overlap, as windows do; the elements of a row may not.
    """
    if strides is None:
        return prod(shape), *row_major(shape)
    steps = _integers(strides, "strides", "strides are integers, one for each axis")
    if len(steps) != len(shape) + 1:
        raise ValueError(
            f"strides {strides} with rows of shape {shape}: the pitch of the rows, and one stride "
            "for each axis of a row"
        )
    if steps[0] < 0:
        raise ValueError(f"strides {steps}: the pitch of the rows cannot be negative")
    return steps[0], *checked_strides(steps[1:], shape)


def checked_pointer(pointer: object, operation: str) -> Pointer:
    """A pointer; `operation` names the caller in the message."""
    if isinstance(pointer, Pointer):
        return pointer
    raise TypeError(
        f"{operation} takes a pointer, as a tensor is passed to a kernel, "
        f"not {type(pointer).__name__} {pointer!r}"
    )


def checked_value(value: object, operation: str) -> Value:
    """A value in TCM; `operation` names the caller in the message."""
    if isinstance(value, Value):
        check_exists(value, operation)
        return value
    raise TypeError(
        f"{operation} takes a value in TCM, such as tl.load returns, "
        f"not {type(value).__name__} {value!r}"
    )


def checked_out(out: object, shape: Shape, dtype: DType, operation: str) -> Value:
    """A value that a result of `shape` and `dtype` is written over."""
    if not isinstance(out, Value):
        given = f"{type(out).__name__} {out!r}"
        raise TypeError(f"{operation}: out is a value in TCM to be written over, not {given}")
    check_exists(out, operation)
    if (out.shape, out.dtype) != (shape, dtype):
        raise ValueError(
            f"{operation}: the result, {dtype.name} of shape {shape}, does not fit over out, "
            f"{out.dtype.name} of shape {out.shape}; they must be equal"
        )
    return out


def check_apart(out: Value, operands: Iterable[object], operation: str) -> None:
    """`ValueError` for an `out` that shares bytes with one of `operands`."""
    for operand in operands:
        if isinstance(operand, Value) and out.shares_bytes(operand):
            raise ValueError(
                f"{operation}: out, {out!r}, shares bytes with the operand {operand!r}, which the "
                "engine reads after it has begun to write"
            )


def checked_dtype(dtype: object, operation: str) -> DType:
    """An element type; `operation` names the caller in the message."""
    if isinstance(dtype, DType):
        return dtype
    raise TypeError(
        f"{operation} takes an element type such as tl.float16, "
        f"not {type(dtype).__name__} {dtype!r}"
    )


def _integers(given: Shape | int, noun: str, rule: str) -> Shape:
    # The usual shapes first: the test of a protocol takes 3 us.
    if type(given) is int:
        return (given,)
    if type(given) is tuple and all(type(each) is int for each in given):
        return given
    try:
        return (
            (index(given),) if isinstance(given, SupportsIndex) else tuple(index(n) for n in given)
        )
    except TypeError:
        raise TypeError(f"{noun} {given!r}: {rule}") from None
