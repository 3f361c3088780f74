"""Launches the reduction of a tensor: the pieces that each PE reduces, and where the result lies.

All elements: every PE reduces the elements that it holds to one partial result; one PE combines
these. Along an axis: the PEs that hold elements of the result load what these need.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import TypeVar

from runtime.core.dtypes import DType
from runtime.core.requests import PerPe
from runtime.device.kernels.reductions import Piece, reduce_pieces
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.launch import launch_on
from runtime.device.memory.sizes import axis_of
from runtime.device.operations.promotion import check_computable
from runtime.device.rank.rank_state import running_rank
from runtime.language.value import Pointer

T = TypeVar("T", bound=DeviceTensor)
Axes = int | Sequence[int] | None
_ALIGNMENT_BYTES = 256
"""Scratch that the alignment of the values of a block may take."""


def reduced_axes(x: DeviceTensor, dim: Axes) -> tuple[int, ...]:
    """The axes that are reduced; none named is all."""
    given = range(len(x.shape)) if dim is None else [dim] if isinstance(dim, int) else dim
    axes = [axis_of(each, len(x.shape)) for each in given]
    for axis in axes:
        if axes.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    # A tensor without axes has the axis 0 for `dim` only.
    return tuple(axes) if axes and x.shape else tuple(range(len(x.shape)))


def reduced(name: str, x: T, dim: Axes, keepdim: bool, dtype: DType) -> T:
    """The reduction in `dtype`, to which elements are converted first."""
    check_computable(name, x.dtype)
    axes = set(reduced_axes(x, dim))
    kept = tuple(
        1 if axis in axes else length
        for axis, length in enumerate(x.shape)
        if keepdim or axis not in axes
    )
    if not x.numel():
        return x.new(kept, dtype).fill_(1 if name == "min" else 0)
    if len(axes) == len(x.shape):
        return _of_all(name, x, dtype).view(kept)
    result = x
    for axis in sorted(axes, reverse=True):
        result = _along(name, result, axis, dtype)
    return result.view(kept)


def _of_all(name: str, x: T, dtype: DType) -> T:
    """All elements, in two steps: by the PEs that hold them, and on one PE."""
    # Of replicas, the first one is enough; several tiles of a PE are several partial results.
    shards = list({each.spec.offset_bytes: each for each in reversed(x.shards)}.values())[::-1]
    shards = [each for each in shards if each.spec.nbytes]
    partial = x.new((len(shards),), dtype)
    pieces: dict[tuple[int, int], list[Piece]] = {}
    for number, shard in enumerate(shards):
        start, count = shard.spec.offset_bytes // x.itemsize, shard.spec.nbytes // x.itemsize
        pieces.setdefault((shard.spec.cube, shard.spec.pe), []).append(_row(start, number, count))
    _launch(name, x, partial, pieces)
    if len(shards) == 1:
        return partial
    result = x.new((1,), dtype)
    spec = result.shards[0].spec
    _launch(name, partial, result, {(spec.cube, spec.pe): [_row(0, 0, len(shards))]})
    return result


def _row(source: int, target: int, count: int) -> Piece:
    return Piece(
        source=source, target=target, outer=1, length=count, inner=1, outer_step=count, step=1
    )


def _along(name: str, x: T, axis: int, dtype: DType) -> T:
    """The reduction along one axis, without the axis."""
    if not x.is_flat:
        stored = f"stored in tiles ({x.layout})" if x.layout else f"split by {x.policy}"
        raise RuntimeError(
            f"{name}: {x.name} is {stored}, so its memory is not in row-major order; "
            "x.contiguous() is a copy that can be reduced along an axis"
        )
    length, inner = x.shape[axis], prod(x.shape[axis + 1 :])
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    result = _beside(x, length, shape, dtype) if inner == 1 else x.new(shape, dtype)
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


def _beside(x: T, length: int, shape: tuple[int, ...], dtype: DType) -> T:
    """A result whose elements lie where the `length` elements lie that they are made of."""
    row = length * x.itemsize
    whole = (each.spec.offset_bytes % row == each.spec.nbytes % row == 0 for each in x.shards)
    return x.like(shape, dtype, length) if all(whole) else x.new(shape, dtype)


def _launch(
    name: str, x: DeviceTensor, result: DeviceTensor, pieces: dict[tuple[int, int], list[Piece]]
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
    used = [x, result]
    launch_on(name, reduce_pieces, arguments, used, sorted(pieces), queue_table="")
