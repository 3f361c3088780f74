"""Reductions of tensors: `torch.sum`, `mean`, `amax`, `amin`, `any`, `all`, and `softmax`.

Sums of floating-point elements are accumulated in float32 and rounded once to the type of the
result.
"""

from math import prod
from typing import TypeVar

import numpy as np

from runtime.core.dtypes import DType, boolean, float32, float64, int64, uint8
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.memory.sizes import axis_of
from runtime.device.operations import elementwise
from runtime.device.operations.elementwise_launch import broadcast_shape
from runtime.device.operations.promotion import kind, type_name
from runtime.device.operations.reduction_launch import Axes, reduced, reduced_axes
from runtime.device.rank.rank_state import running_rank

T = TypeVar("T", bound=DeviceTensor)


def sum(  # noqa: A001 - PyTorch's name
    input: T,  # noqa: A002
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> T:
    """The sum of all elements (shape `()`) or along axes; integers and bool give int64."""
    inner = _sum_type(dtype or input.dtype)
    result = dtype or (input.dtype if kind(input.dtype) == 2 else int64)
    return _converted(reduced("sum", input, dim, keepdim, inner), result)


def mean(
    input: T,  # noqa: A002
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> T:
    """The mean of all elements or along axes, of floating-point tensors."""
    result = dtype or input.dtype
    if kind(result) < 2:
        raise NotImplementedError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {type_name(input.dtype)}"
        )
    total = reduced("sum", input, dim, keepdim, _sum_type(result))
    count = prod(input.shape[axis] for axis in reduced_axes(input, dim))
    # 0 / 0 is NaN, the mean of no elements in PyTorch.
    return _converted(elementwise.div(total, count), result)


def amax(input: T, dim: Axes = None, keepdim: bool = False) -> T:  # noqa: A002
    """The greatest element, or the greatest ones along axes; NaN where there is one."""
    return _extreme("max", input, dim, keepdim)


def amin(input: T, dim: Axes = None, keepdim: bool = False) -> T:  # noqa: A002
    """The least element, or the least ones along axes; NaN where there is one."""
    return _extreme("min", input, dim, keepdim)


def max(input: T, other: T | None = None) -> T:  # noqa: A001, A002
    """The greatest element; with another tensor, `torch.maximum`. Values along an axis are those of
    `amax`: the engines find no indices.
    """
    return _greatest("max", "amax", input, other)


def min(input: T, other: T | None = None) -> T:  # noqa: A001, A002
    """The least element; with another tensor, `torch.minimum`. Values along an axis are those of
    `amin`: the engines find no indices.
    """
    return _greatest("min", "amin", input, other)


def any(input: T, dim: Axes = None, keepdim: bool = False) -> T:  # noqa: A001, A002
    """Whether an element is not 0, as bool (of uint8 as uint8)."""
    result = reduced("max", input, dim, keepdim, boolean)
    return _converted(result, uint8 if input.dtype == uint8 else boolean)


def all(input: T, dim: Axes = None, keepdim: bool = False) -> T:  # noqa: A001, A002
    """Whether no element is 0, as bool (of uint8 as uint8)."""
    result = reduced("min", input, dim, keepdim, boolean)
    return _converted(result, uint8 if input.dtype == uint8 else boolean)


def softmax(input: T, dim: int, *, dtype: DType | None = None) -> T:  # noqa: A002
    """`exp(x - max) / sum(exp(x - max))` along an axis, in five kernels; computed in float32."""
    result = dtype or input.dtype
    if kind(result) < 2:
        raise NotImplementedError(f"\"softmax\" not implemented for '{type_name(result)}'")
    if axis_of(dim, len(input.shape)) >= 0 and not input.numel():
        return input.new(input.shape, result)
    wide = _converted(input, _sum_type(result))
    powers = elementwise.exp(elementwise.sub(wide, amax(wide, dim, keepdim=True)))
    return _converted(elementwise.div(powers, sum(powers, dim, keepdim=True)), result)


def equal(input: DeviceTensor, other: DeviceTensor) -> bool:  # noqa: A002
    """Whether shape and elements are equal, compared on the host: both tensors are read."""
    _check_tensor("equal", other)
    a, b = _read("equal", input, other)
    return a.shape == b.shape and bool(np.array_equal(a, b))


def allclose(
    input: DeviceTensor,  # noqa: A002
    other: DeviceTensor,
    rtol: float = 1e-5,
    atol: float = 1e-8,
    equal_nan: bool = False,
) -> bool:
    """Whether `|input - other| <= atol + rtol * |other|` for all elements, computed in float64 on
    the host: both tensors are read.
    """
    _check_tensor("allclose", other)
    if input.dtype != other.dtype:
        names = type_name(input.dtype), type_name(other.dtype)
        raise RuntimeError(f"{names[0]} did not match {names[1]}")
    broadcast_shape([input.shape, other.shape])
    a, b = (each.astype(np.float64) for each in _read("allclose", input, other))
    return bool(np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan))


def _check_tensor(function: str, other: object) -> None:
    if not isinstance(other, DeviceTensor):
        raise TypeError(
            f"{function}(): argument 'other' (position 2) must be Tensor, not "
            f"{type(other).__name__}"
        )


def _read(function: str, *tensors: DeviceTensor) -> list[np.ndarray]:
    if not running_rank().data:
        raise RuntimeError(f"{function}() is not known: this run simulates no data")
    return [each.numpy() for each in tensors]


def _extreme(name: str, x: T, dim: Axes, keepdim: bool) -> T:
    axes = reduced_axes(x, dim)
    if not prod(x.shape[axis] for axis in axes):
        if dim is None:
            raise RuntimeError(
                f"a{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        raise IndexError(f"a{name}(): Expected reduction dim {axes[0]} to have non-zero size.")
    return reduced(name, x, dim, keepdim, x.dtype)


def _greatest(name: str, along: str, x: T, other: T | None) -> T:
    if other is None:
        return _extreme(name, x, None, False)
    if isinstance(other, DeviceTensor):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
        function = elementwise.maximum if name == "max" else elementwise.minimum
        return function(x, other)
    raise NotImplementedError(
        f"{name}() along an axis: the engines find no indices; the values are torch.{along}(x, dim)"
    )


def _sum_type(dtype: DType) -> DType:
    """The type in which elements of a type are summed."""
    return int64 if kind(dtype) < 2 else dtype if dtype == float64 else float32


def _converted(x: T, dtype: DType) -> T:
    return x if x.dtype == dtype else elementwise.converted(x, dtype)
