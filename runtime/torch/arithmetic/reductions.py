"""Reductions of tensors: `torch.sum`, `mean`, `amax`, `amin`, `any`, `all`, and `softmax`.

All elements: every PE reduces the elements that it holds to one partial result; one PE combines
these. Along an axis: the PEs that hold elements of the result load what these need. Sums of
floating-point elements are accumulated in float32 and rounded once to the type of the result.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import cast

import numpy as np

from runtime.core.dtypes import DType, boolean, float32, float64, int64, uint8
from runtime.core.requests import PerPe
from runtime.language.value import Pointer
from runtime.torch.arithmetic import elementwise
from runtime.torch.arithmetic.elementwise_launch import broadcast_shape
from runtime.torch.arithmetic.promotion import check_computable, kind, type_name
from runtime.torch.arithmetic.reduction_kernel import Piece, reduce_pieces
from runtime.torch.ops import launch_on
from runtime.torch.rank_state import running_rank
from runtime.torch.tensors.creation import empty
from runtime.torch.tensors.sizes import axis_of
from runtime.torch.tensors.storage import Storage, Window, window_shards
from runtime.torch.tensors.stored_tensor import StoredTensor
from runtime.torch.tensors.tensor import Tensor
from runtime.torch.tensors.tensor_memory import Shard

Axes = int | Sequence[int] | None
_ALIGNMENT_BYTES = 256


def sum(  # noqa: A001 - PyTorch's name
    input: Tensor,  # noqa: A002
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The sum of all elements (shape `()`) or along axes; integers and bool give int64."""
    inner = _sum_type(dtype or input.dtype)
    result = dtype or (input.dtype if kind(input.dtype) == 2 else int64)
    return _converted(_reduced("sum", input, dim, keepdim, inner), result)


def mean(
    input: Tensor,  # noqa: A002
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: DType | None = None,
) -> Tensor:
    """The mean of all elements or along axes, of floating-point tensors."""
    result = dtype or input.dtype
    if kind(result) < 2:
        raise NotImplementedError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or "
            f"complex dtype. Got: {type_name(input.dtype)}"
        )
    total = _reduced("sum", input, dim, keepdim, _sum_type(result))
    count = prod(input.shape[axis] for axis in _axes(input, dim))
    # 0 / 0 is NaN, the mean of no elements in PyTorch.
    return _converted(elementwise.div(total, count), result)


def amax(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:  # noqa: A002
    """The greatest element, or the greatest ones along axes; NaN where there is one."""
    return _extreme("max", input, dim, keepdim)


def amin(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:  # noqa: A002
    """The least element, or the least ones along axes; NaN where there is one."""
    return _extreme("min", input, dim, keepdim)


def max(input: Tensor, other: Tensor | None = None) -> Tensor:  # noqa: A001, A002
    """The greatest element; with another tensor, `torch.maximum`. Values along an axis are those of
    `amax`: the engines find no indices.
    """
    return _greatest("max", "amax", input, other)


def min(input: Tensor, other: Tensor | None = None) -> Tensor:  # noqa: A001, A002
    """The least element; with another tensor, `torch.minimum`. Values along an axis are those of
    `amin`: the engines find no indices.
    """
    return _greatest("min", "amin", input, other)


def any(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:  # noqa: A001, A002
    """Whether an element is not 0, as bool (of uint8 as uint8)."""
    result = _reduced("max", input, dim, keepdim, boolean)
    return _converted(result, uint8 if input.dtype == uint8 else boolean)


def all(input: Tensor, dim: Axes = None, keepdim: bool = False) -> Tensor:  # noqa: A001, A002
    """Whether no element is 0, as bool (of uint8 as uint8)."""
    result = _reduced("min", input, dim, keepdim, boolean)
    return _converted(result, uint8 if input.dtype == uint8 else boolean)


def softmax(input: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:  # noqa: A002
    """`exp(x - max) / sum(exp(x - max))` along an axis, in five kernels; computed in float32."""
    result = dtype or input.dtype
    if kind(result) < 2:
        raise NotImplementedError(f"\"softmax\" not implemented for '{type_name(result)}'")
    if axis_of(dim, len(input.shape)) >= 0 and not input.numel():
        return empty(input.shape, dtype=result)
    wide = _converted(input, _sum_type(result))
    powers = elementwise.exp(elementwise.sub(wide, amax(wide, dim, keepdim=True)))
    return _converted(elementwise.div(powers, sum(powers, dim, keepdim=True)), result)


def equal(input: Tensor, other: Tensor) -> bool:  # noqa: A002
    """Whether shape and elements are equal, compared on the host: both tensors are read."""
    _check_tensor("equal", other)
    a, b = _read("equal", input, other)
    return a.shape == b.shape and bool(np.array_equal(a, b))


def allclose(
    input: Tensor,  # noqa: A002
    other: Tensor,
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
    if not isinstance(other, StoredTensor):
        raise TypeError(
            f"{function}(): argument 'other' (position 2) must be Tensor, not "
            f"{type(other).__name__}"
        )


def _read(function: str, *tensors: Tensor) -> list[np.ndarray]:
    if not running_rank().data:
        raise RuntimeError(f"{function}() is not known: this run simulates no data")
    return [each.numpy() for each in tensors]


def _extreme(name: str, x: Tensor, dim: Axes, keepdim: bool) -> Tensor:
    axes = _axes(x, dim)
    if not prod(x.shape[axis] for axis in axes):
        if dim is None:
            raise RuntimeError(
                f"a{name}(): Expected reduction dim to be specified for input.numel() == 0. "
                "Specify the reduction dim with the 'dim' argument."
            )
        raise IndexError(f"a{name}(): Expected reduction dim {axes[0]} to have non-zero size.")
    return _reduced(name, x, dim, keepdim, x.dtype)


def _greatest(name: str, along: str, x: Tensor, other: object) -> Tensor:
    if other is None:
        return _extreme(name, x, None, False)
    if isinstance(other, StoredTensor):
        function = elementwise.maximum if name == "max" else elementwise.minimum
        return function(x, cast("Tensor", other))
    raise NotImplementedError(
        f"{name}() along an axis: the engines find no indices; the values are torch.{along}(x, dim)"
    )


def _sum_type(dtype: DType) -> DType:
    """The type in which elements of a type are summed."""
    return int64 if kind(dtype) < 2 else dtype if dtype == float64 else float32


def _converted(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype == dtype else elementwise.converted(x, dtype)


def _axes(x: StoredTensor, dim: Axes) -> tuple[int, ...]:
    """The axes that are reduced; none named is all."""
    given = range(len(x.shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = [axis_of(each, len(x.shape)) for each in given]
    for axis in axes:
        if axes.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    # A tensor without axes has the axis 0 for `dim` only.
    return tuple(axes) if axes and x.shape else tuple(range(len(x.shape)))


def _reduced(name: str, x: Tensor, dim: Axes, keepdim: bool, dtype: DType) -> Tensor:
    """The reduction in `dtype`, to which elements are converted first."""
    check_computable(name, x.dtype)
    axes = set(_axes(x, dim))
    kept = tuple(
        1 if axis in axes else length
        for axis, length in enumerate(x.shape)
        if keepdim or axis not in axes
    )
    if not x.numel():
        return elementwise.filled(kept, 1 if name == "min" else 0, dtype)
    if len(axes) == len(x.shape):
        return _of_all(name, x, dtype).view(kept)
    result = x
    for axis in sorted(axes, reverse=True):
        result = _along(name, result, axis, dtype)
    return result.view(kept)


def _of_all(name: str, x: Tensor, dtype: DType) -> Tensor:
    """All elements, in two steps: by the PEs that hold them, and on one PE."""
    # Of replicas, the first one is enough; several tiles of a PE are several partial results.
    shards = list({each.spec.offset_bytes: each for each in reversed(x.shards)}.values())[::-1]
    shards = [each for each in shards if each.spec.nbytes]
    partial = empty((len(shards),), dtype=dtype)
    pieces: dict[tuple[int, int], list[Piece]] = {}
    for number, shard in enumerate(shards):
        start, count = shard.spec.offset_bytes // x.itemsize, shard.spec.nbytes // x.itemsize
        pieces.setdefault((shard.spec.cube, shard.spec.pe), []).append(_row(start, number, count))
    _launch(name, x, partial, pieces)
    if len(shards) == 1:
        return partial
    result = empty((1,), dtype=dtype)
    at = result.shards[0].spec
    _launch(name, partial, result, {(at.cube, at.pe): [_row(0, 0, len(shards))]})
    return result


def _row(source: int, target: int, count: int) -> Piece:
    return Piece(
        source=source, target=target, outer=1, length=count, inner=1, outer_step=count, step=1
    )


def _along(name: str, x: Tensor, axis: int, dtype: DType) -> Tensor:
    """The reduction along one axis, without the axis."""
    if not x.is_flat:
        stored = f"stored in tiles ({x.layout})" if x.layout else f"split by {x.policy}"
        raise RuntimeError(
            f"{name}: {x.name} is {stored}, so its memory is not in row-major order; "
            "x.contiguous() is a copy that can be reduced along an axis"
        )
    length, inner = x.shape[axis], prod(x.shape[axis + 1 :])
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    result = _beside(x, length, shape, dtype) if inner == 1 else empty(shape, dtype=dtype)
    pieces: dict[tuple[int, int], list[Piece]] = {}
    for shard in result.shards:
        start, count = (
            each // result.itemsize for each in (shard.spec.offset_bytes, shard.spec.nbytes)
        )
        if count:
            pe = shard.spec.cube, shard.spec.pe
            pieces.setdefault(pe, []).extend(_pieces(start, start + count, length, inner))
    _launch(name, x, result, pieces)
    return result


def _pieces(start: int, stop: int, length: int, inner: int) -> Iterator[Piece]:
    """The pieces whose results are the row-major elements [start, stop)."""
    while start < stop:
        outer, first = divmod(start, inner)
        end = inner if outer < stop // inner else stop % inner
        # Whole rows of results are one piece, part of a row is a piece of its own.
        rows = stop // inner - outer if not first and end == inner else 1
        yield Piece(
            source=outer * length * inner + first,
            target=start,
            outer=rows,
            length=length,
            inner=end - first,
            outer_step=length * inner,
            step=inner,
        )
        start += rows * (end - first)


def _beside(x: StoredTensor, length: int, shape: tuple[int, ...], dtype: DType) -> Tensor:
    """A result whose elements lie where the `length` elements lie that they are made of."""
    row = length * x.itemsize
    whole = (each.spec.offset_bytes % row == each.spec.nbytes % row == 0 for each in x.shards)
    if not np.all(list(whole)):
        return empty(shape, dtype=dtype)
    state = running_rank()
    specs = [
        replace(
            shard.spec,
            offset_bytes=shard.spec.offset_bytes // row * dtype.itemsize,
            nbytes=shard.spec.nbytes // row * dtype.itemsize,
        )
        for shard in x.shards
    ]
    state.tensors += 1
    allocation = state.memory.allocate(specs, prod(shape) * dtype.itemsize)
    storage = Storage(f"t{state.tensors}{list(shape)}", allocation)
    # Computes the spans of the shards in the new shape.
    shards: tuple[Shard, ...] = window_shards(storage.shards, 0, shape, dtype.itemsize)
    window = Window(storage, storage.address, shards, is_flat=True)
    return Tensor(state, window, shape=shape, dtype=dtype, policy=x.policy, layout=None)


def _launch(
    name: str, x: StoredTensor, result: Tensor, pieces: dict[tuple[int, int], list[Piece]]
) -> None:
    scratch = running_rank().topology.kernel_scratch_bytes - _ALIGNMENT_BYTES
    # An element is loaded and converted; up to two results are as large as the block.
    most = scratch // (x.itemsize + 4 * result.itemsize)
    arguments = (
        name,
        result.dtype,
        PerPe({pe: tuple(each) for pe, each in sorted(pieces.items())}),
        most,
        Pointer(x.address, x.dtype),
        Pointer(result.address, result.dtype),
    )
    used = [cast("Tensor", x), result]
    launch_on(name, reduce_pieces, arguments, used, sorted(pieces), queue_table="")
