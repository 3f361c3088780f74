"""Constructors of tensors: `empty`, `zeros`, `ones`, `full`, `from_numpy`, `tensor`, and those like
another tensor.

Arguments are PyTorch's, and so are the beginnings of error messages. Two keywords are kernbench's
own: `dp` places the elements on PEs by a `DPPolicy` (by default as `default_placement` does), or
deals the tiles of a matrix to PEs (`torch.tiled_row_major(rows, columns)`). `layout` orders the
elements of a shard of a matrix in the memory of its PE: row-major (None), or tile after tile
(`torch.blocked_row_major(rows, columns)`). The host sees the same matrix with each of them.
"""

from collections.abc import Sequence
from typing import Any, Unpack, cast

import numpy as np

from runtime.core import dtypes
from runtime.core.dtypes import DType, boolean, float32, int64
from runtime.device.memory.sizes import shape_of
from runtime.device.operations.promotion import check_range, is_number, kind, number_type
from runtime.language.value import Array
from runtime.model.blocked_layout import BlockedLayout
from runtime.model.placement import Placement
from runtime.torch.tensors.creation_options import (
    TYPES,
    Keywords,
    LayoutKeywords,
    Options,
    checked_options,
)
from runtime.torch.tensors.tensor import Tensor


def empty(
    *size: int | Sequence[int],
    **keywords: Unpack[LayoutKeywords],
) -> Tensor:
    """A tensor that is not initialised: its elements are the bytes that the memory holds."""
    options = checked_options("empty", keywords, has_layout=True)
    return options.new(shape_of("empty", size), float32)


def full(
    size: int | Sequence[int],
    fill_value: float,
    **keywords: Unpack[LayoutKeywords],
) -> Tensor:
    """A tensor with the same value everywhere, by default of the type that PyTorch infers: float32,
    int64 or bool. `RuntimeError` for a value outside the range of an integer type.
    """
    options = checked_options("full", keywords, has_layout=True)
    return _filled("full", (size,), fill_value, options)


def zeros(
    *size: int | Sequence[int],
    **keywords: Unpack[LayoutKeywords],
) -> Tensor:
    """A tensor of zeros."""
    options = checked_options("zeros", keywords, has_layout=True)
    return _filled("zeros", size, 0.0, options)


def ones(
    *size: int | Sequence[int],
    **keywords: Unpack[LayoutKeywords],
) -> Tensor:
    """A tensor of ones."""
    options = checked_options("ones", keywords, has_layout=True)
    return _filled("ones", size, 1.0, options)


def empty_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    **keywords: Unpack[Keywords],
) -> Tensor:
    """A tensor that is not initialised, with the shape, type and placement of `input`."""
    return like("empty_like", input, keywords)


def zeros_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    **keywords: Unpack[Keywords],
) -> Tensor:
    """A tensor of zeros with the shape, type and placement of `input`."""
    new = like("zeros_like", input, keywords)
    return new.fill_(0)


def ones_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    **keywords: Unpack[Keywords],
) -> Tensor:
    """A tensor of ones with the shape, type and placement of `input`."""
    new = like("ones_like", input, keywords)
    return new.fill_(1)


def full_like(
    input: Tensor,  # noqa: A002 - PyTorch's name
    fill_value: float,
    **keywords: Unpack[Keywords],
) -> Tensor:
    """A tensor of one value with the shape, type and placement of `input`."""
    options = checked_options("full_like", keywords).of(checked_tensor("full_like", input))
    return _filled("full_like", (input.shape,), fill_value, options)


def from_numpy(
    array: Array, *, dp: Placement | None = None, layout: BlockedLayout | None = None
) -> Tensor:
    """A tensor with a copy of the elements of `array`; `TypeError` for an element type that the
    hardware does not have.
    """
    if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    options = checked_options("from_numpy", {"dp": dp, "layout": layout}, has_layout=True)
    return options.new(tuple(array.shape), dtypes.from_numpy(array.dtype)).copy_(array)


def tensor(
    data: object,
    **keywords: Unpack[LayoutKeywords],
) -> Tensor:
    """A tensor with the elements of a number, a nested sequence of numbers, a numpy array or
    another tensor.

    Without `dtype`, Python floats become float32, integers int64 and bools bool, as in PyTorch; an
    array and a tensor keep their type. `TypeError` for a type that the hardware does not have,
    `ValueError` for a ragged sequence, `RuntimeError` for a number outside the range of an integer
    type.
    """
    options = checked_options("tensor", keywords, has_layout=True)
    values = data.numpy() if isinstance(data, Tensor) else _as_array(data)
    if values.dtype.kind not in "biuf" and not _is_known(values.dtype):
        raise TypeError(f"Could not infer dtype of {_element_type(data)}")
    element = options.dtype or _inferred(data, values)
    if not isinstance(data, Tensor | np.ndarray | np.generic):
        _check_range(values, element)
    # PyTorch wraps and truncates where an array is converted, as numpy does.
    converted = values.astype(element.numpy)
    return options.new(converted.shape, element).copy_(converted)


def like(
    function: str,
    input: Tensor,  # noqa: A002 - PyTorch's name
    keywords: Keywords,
) -> Tensor:
    """A tensor that is not written, with the shape, type and placement of `input` where the
    keywords of the call of `function` have no others.
    """
    options = checked_options(function, keywords).of(checked_tensor(function, input))
    return options.new(input.shape, input.dtype)


def checked_tensor(function: str, given: object) -> Tensor:
    """A tensor; `TypeError` for anything else."""
    if isinstance(given, Tensor):
        return given
    problem = f"must be Tensor, not {type(given).__name__}"
    raise TypeError(f"{function}(): argument 'input' (position 1) {problem}")


def _filled(function: str, size: Sequence[object], value: object, options: Options) -> Tensor:
    if not is_number(value):
        problem = f"must be Number, not {type(value).__name__}"
        raise TypeError(f"{function}(): argument 'fill_value' (position 2) {problem}")
    number = cast("float", value)
    element = options.dtype or number_type(number)
    check_range(number, element)
    # Of an integer type, the fraction is cut off.
    exact = int(number) if kind(element) == 1 else number
    return options.new(shape_of(function, size), element).fill_(exact)


def _as_array(data: object) -> Array:
    try:
        return np.asarray(data)
    except ValueError as error:
        raise ValueError(f"tensor(): the sequence is ragged: {error}") from None


def _inferred(data: object, values: Array) -> DType:
    """The element type of `data` in PyTorch."""
    if isinstance(data, Tensor):
        return data.dtype
    # numpy gives Python floats 64 bits, PyTorch 32. A list of numbers of numpy keeps their type.
    if not isinstance(data, np.ndarray | np.generic) and values.dtype == np.float64:
        return float32
    # Python integers beyond int64 are unsigned in numpy, and out of range in PyTorch.
    if not isinstance(data, np.ndarray | np.generic) and values.dtype == np.uint64:
        return int64
    if not _is_known(values.dtype):
        advice = f"pass dtype, one of {TYPES}"
        raise TypeError(f"tensor(): dtype {values.dtype} does not exist on this hardware; {advice}")
    return dtypes.from_numpy(values.dtype)


def _is_known(dtype: np.dtype[Any]) -> bool:
    return any(known.numpy == dtype for known in dtypes.ALL)


def _element_type(data: object) -> str:
    first = data
    while isinstance(first, list | tuple) and first:
        first = cast("Sequence[object]", first)[0]
    return type(cast("object", first)).__name__


def _check_range(values: Array, dtype: DType) -> None:
    """PyTorch refuses a Python number outside the range of an integer type; fractions are cut
    off.
    """
    if dtype.is_floating_point or dtype == boolean or not values.size:
        return
    for value in (values.min(), values.max()):
        check_range(value, dtype)
