"""The element type of a result, by PyTorch's rules of type promotion.

Types have three kinds: bool, integers, floating point. Of operands of one kind the wider type wins;
a higher kind wins if its operand has axes. A tensor without axes, and after it a Python number,
counts only if its kind is higher than that of all others.
"""

from collections.abc import Iterable
from functools import reduce
from math import isfinite, isnan
from numbers import Real

import numpy as np

from runtime.core.dtypes import (
    DType,
    boolean,
    float8e4nv,
    float8e5,
    float32,
    float64,
    int8,
    int64,
    uint8,
)
from runtime.device.launches.device_tensor import DeviceTensor

_NAMES = {
    "bool": "Bool",
    "uint8": "Byte",
    "int8": "Char",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "bfloat16": "BFloat16",
    "float32": "Float",
    "float64": "Double",
    "float8_e4m3fn": "Float8_e4m3fn",
    "float8_e5m2": "Float8_e5m2",
}
"""The names of types in PyTorch's error messages."""


def type_name(dtype: DType) -> str:
    """The name of a type in PyTorch's error messages."""
    return _NAMES[dtype.torch_name]


def kind(dtype: DType) -> int:
    """0 for bool, 1 for integers, 2 for floating-point types."""
    return 0 if dtype == boolean else 2 if dtype.is_floating_point else 1


def check_computable(function: str, dtype: DType) -> None:
    """`NotImplementedError` for a type that tensors only store and convert, as in PyTorch."""
    if dtype in (float8e4nv, float8e5):
        raise NotImplementedError(
            f"\"{function}\" not implemented for '{type_name(dtype)}': convert with "
            "x.to(torch.float32), or compute in a kernel"
        )


def promoted(a: DType, b: DType) -> DType:
    """The smallest type that holds elements of both; `TypeError` where the hardware has none."""
    if a == b:
        return a
    if kind(a) != kind(b):
        return max(a, b, key=kind)
    if {a, b} == {uint8, int8}:
        raise TypeError("uint8 and int8 promote to int16, which this hardware does not have")
    if a.itemsize == b.itemsize:
        # float16 and bfloat16: neither holds the other.
        return float32
    return max(a, b, key=lambda dtype: dtype.itemsize)


def result_type(operands: Iterable[DeviceTensor | float]) -> DType:
    """The type of a result of tensors and numbers. A Python float counts as float32, an integer as
    int64.
    """
    groups: tuple[list[DType], ...] = ([], [], [])
    for operand in operands:
        if isinstance(operand, DeviceTensor):
            groups[0 if operand.shape else 1].append(operand.dtype)
        else:
            groups[2].append(number_type(operand))
    folded = [reduce(promoted, group) for group in groups if group]
    return reduce(_combined, folded)


def inner_type(dtype: DType, operands: Iterable[DeviceTensor | float]) -> DType:
    """The type in which the engine computes: float32 for a number that a smaller type rounds."""
    if kind(dtype) < 2 or dtype in (float32, float64):
        return dtype
    numbers = [each for each in operands if not isinstance(each, DeviceTensor)]
    with np.errstate(over="ignore"):
        exact = all(
            float(dtype.numpy.type(number)) == number or isnan(number) for number in numbers
        )
    return dtype if exact else float32


def as_element(operand: DeviceTensor | float, dtype: DType) -> DeviceTensor | float:
    """A tensor, or a number rounded to a floating-point type."""
    if isinstance(operand, DeviceTensor) or kind(dtype) < 2:
        return operand
    with np.errstate(over="ignore"):
        return float(dtype.numpy.type(operand))


def number_type(number: float) -> DType:
    """The type that a Python number counts as."""
    if isinstance(number, bool | np.bool):
        return boolean
    return int64 if isinstance(number, int | np.integer) else float32


def is_number(operand: object) -> bool:
    """Whether an operand is a number of Python or numpy that is not complex."""
    return isinstance(operand, Real | np.bool)


def check_range(number: float, dtype: DType) -> None:
    """`RuntimeError` for a number that an element type cannot take. As in PyTorch, a fraction is
    cut off, a small negative number wraps round in uint8, and bool takes every number.
    """
    if dtype == boolean:
        return
    if dtype.is_floating_point:
        fits = not isfinite(number) or abs(number) <= dtype.greatest
    else:
        limits = np.iinfo(dtype.numpy.name)
        # A comparison with NaN is false.
        fits = (limits.min or -int(limits.max)) <= number <= limits.max
    if not fits:
        problem = f"cannot be converted to type {dtype.torch_name} without overflow"
        raise RuntimeError(f"value {number} {problem}")


def wrapped(number: float, dtype: DType) -> float:
    """A number as an element of an integer type, which wraps round; unchanged for other types."""
    if kind(dtype) != 1:
        return number
    limits = np.iinfo(dtype.numpy.name)
    return (int(number) - int(limits.min)) % (1 << 8 * dtype.itemsize) + int(limits.min)


def _combined(higher: DType, lower: DType) -> DType:
    """The type of two groups of operands, of which the first takes precedence."""
    return lower if kind(lower) > kind(higher) else higher
