"""Constructors of tensors: `empty`, `zeros`, `ones`, `full`, `from_numpy` and `tensor`.

Arguments are PyTorch's, and so are the beginnings of error messages. Two keywords are kernbench's
own: `dp` places the elements on PEs by a `DPPolicy` (by default as `default_placement` does), or
deals the tiles of a matrix to PEs (`torch.tiled_row_major(rows, columns)`). `layout` orders the
elements of a shard of a matrix in the memory of its PE: row-major (None), or tile after tile
(`torch.blocked_row_major(rows, columns)`). The host sees the same matrix with each of them.
"""

from collections.abc import Sequence
from math import isfinite
from numbers import Real
from typing import Any, cast

import numpy as np

from runtime.core import dtypes
from runtime.core.dtypes import DType, float32, int32
from runtime.language.value import Array
from runtime.model.blocked_layout import BlockedLayout
from runtime.model.placement import ONE_PE, DPPolicy, Placement, default_placement
from runtime.model.tile_placement import TilePlacement
from runtime.torch.rank_state import running_rank
from runtime.torch.sizes import shape_of
from runtime.torch.tensor import Tensor

_TYPES = ", ".join(repr(dtype) for dtype in dtypes.ALL)


def empty(
    *size: int | Sequence[int],
    dtype: DType = float32,
    dp: Placement | None = None,
    layout: BlockedLayout | None = None,
) -> Tensor:
    """A tensor that is not initialised: its elements are the bytes that the memory holds."""
    return _allocated("empty", size, dtype, dp, layout)


def full(
    size: int | Sequence[int],
    fill_value: float,
    *,
    dtype: DType = float32,
    dp: Placement | None = None,
    layout: BlockedLayout | None = None,
) -> Tensor:
    """A tensor with the same value everywhere; `RuntimeError` for a value outside the range of an
    integer type.
    """
    return _filled("full", (size,), fill_value, dtype, dp, layout)


def zeros(
    *size: int | Sequence[int],
    dtype: DType = float32,
    dp: Placement | None = None,
    layout: BlockedLayout | None = None,
) -> Tensor:
    """A tensor of zeros."""
    return _filled("zeros", size, 0, dtype, dp, layout)


def ones(
    *size: int | Sequence[int],
    dtype: DType = float32,
    dp: Placement | None = None,
    layout: BlockedLayout | None = None,
) -> Tensor:
    """A tensor of ones."""
    return _filled("ones", size, 1, dtype, dp, layout)


def from_numpy(
    array: Array, *, dp: Placement | None = None, layout: BlockedLayout | None = None
) -> Tensor:
    """A tensor with the elements of `array`; `TypeError` for an element type that the hardware does
    not have.
    """
    if not isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance] - user code is not type-checked
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    placed = _check_placement("from_numpy", dp, layout)
    return _new(tuple(array.shape), dtypes.from_numpy(array.dtype), placed).copy_(array)


def tensor(
    data: object,
    *,
    dtype: DType | None = None,
    dp: Placement | None = None,
    layout: BlockedLayout | None = None,
) -> Tensor:
    """A tensor with the elements of a number, a nested sequence of numbers, a numpy array or
    another tensor.

    Without `dtype`, Python floats become float32 as in PyTorch, and Python integers int32, since
    the hardware has no int64; an array and a tensor keep their type. `TypeError` for a type that
    the hardware does not have (bool, float64), `ValueError` for a ragged sequence, `RuntimeError`
    for a number outside the range of an integer type.
    """
    if dtype is not None:
        _check_dtype("tensor", dtype)
    placed = _check_placement("tensor", dp, layout)
    values = data.numpy() if isinstance(data, Tensor) else _as_array(data)
    if values.dtype.kind not in "biuf" and not _is_known(values.dtype):
        raise TypeError(f"Could not infer dtype of {_element_type(data)}")
    element = dtype or _inferred(data, values)
    if not isinstance(data, Tensor | np.ndarray | np.generic):
        _check_range(values, element)
    # PyTorch wraps and truncates where an array is converted, as numpy does.
    converted = values.astype(element.numpy)
    return _new(converted.shape, element, placed).copy_(converted)


def _allocated(
    function: str, size: Sequence[object], dtype: object, dp: object, layout: object
) -> Tensor:
    element = _check_dtype(function, dtype)
    placed = _check_placement(function, dp, layout)
    return _new(shape_of(function, size), element, placed)


def _new(
    shape: tuple[int, ...], dtype: DType, placed: tuple[Placement | None, BlockedLayout | None]
) -> Tensor:
    state, (policy, layout) = running_rank(), placed
    if policy is None:
        # The tiles of a `layout` are counted in one shard: it is divided only by an explicit `dp`.
        topology = state.topology
        policy = (
            ONE_PE
            if layout
            else default_placement(
                shape, dtype.itemsize, cubes=topology.cubes, pes=topology.pes_per_cube
            )
        )
    return Tensor.allocate(shape, dtype, policy, state, layout)


def _filled(
    function: str,
    size: Sequence[object],
    value: object,
    dtype: object,
    dp: object,
    layout: object,
) -> Tensor:
    element = _check_dtype(function, dtype)
    if not isinstance(value, Real):
        problem = f"must be Number, not {type(value).__name__}"
        raise TypeError(f"{function}(): argument 'fill_value' (position 2) {problem}")
    # NaN and infinity have no integer value that `holds` could compare.
    number = float(value)
    if not element.is_floating_point and not (isfinite(number) and element.holds(number)):
        raise _overflow(value, element)
    return _allocated(function, size, element, dp, layout).copy_(np.asarray(number))


def _check_dtype(function: str, dtype: object) -> DType:
    if isinstance(dtype, DType):
        return dtype
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "")
    match = [known for known in dtypes.ALL if known.torch_name == name]
    advice = f"did you mean {match[0]!r}?" if match else f"known: {_TYPES}"
    given = f"{type(dtype).__name__} {dtype!r}" if isinstance(dtype, str) else type(dtype).__name__
    raise TypeError(f"{function}(): argument 'dtype' must be torch.dtype, not {given}; {advice}")


def _check_placement(
    function: str, dp: object, layout: object
) -> tuple[Placement | None, BlockedLayout | None]:
    if dp is not None and not isinstance(dp, DPPolicy | TilePlacement):
        problem = f"must be torch.DPPolicy or torch.tiled_row_major(...), not {_described(dp)}"
        raise TypeError(f"{function}(): argument 'dp' {problem}")
    if layout is not None and not isinstance(layout, BlockedLayout):
        advice = "torch.blocked_row_major(...), torch.blocked_column_major(...) or None"
        problem = f"must be {advice}, not {_described(layout)}"
        raise TypeError(f"{function}(): argument 'layout' {problem}")
    return dp, layout


def _described(given: object) -> str:
    """The type of an argument; for the two kinds of tiles, the argument that they belong to."""
    match given:
        case TilePlacement():
            call = f"torch.tiled_{given.order}(...)"
            return f"{call}, which deals tiles to PEs: dp={call}"
        case BlockedLayout():
            call = f"torch.blocked_{given.order}(...)"
            return f"{call}, which orders the elements of a shard: layout={call}"
        case _:
            return type(given).__name__


def _as_array(data: object) -> Array:
    try:
        return np.asarray(data)
    except ValueError as error:
        raise ValueError(f"tensor(): the sequence is ragged: {error}") from None


def _inferred(data: object, values: Array) -> DType:
    """The element type of `data` in PyTorch, or its substitute: int32 for int64."""
    if isinstance(data, Tensor):
        return data.dtype
    if not isinstance(data, np.ndarray | np.generic):
        # numpy gives Python numbers 64 bits.
        if values.dtype == np.float64:
            return float32
        if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
            return int32
    if not _is_known(values.dtype):
        advice = f"pass dtype, one of {_TYPES}"
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
    if dtype.is_floating_point or not values.size:
        return
    limits = np.iinfo(dtype.numpy.name)
    for value in (values.min(), values.max()):
        # The comparison is false for NaN, too.
        if not limits.min <= value <= limits.max:
            raise _overflow(value, dtype)


def _overflow(value: object, dtype: DType) -> RuntimeError:
    problem = f"cannot be converted to type {dtype.torch_name} without overflow"
    return RuntimeError(f"value {value} {problem}")
