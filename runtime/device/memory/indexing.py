"""`tensor[...]`: the elements that an index selects, and the contiguous runs of a shard's memory
that hold them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from types import EllipsisType
from typing import Any, SupportsIndex

import numpy as np

from runtime.core.dtypes import boolean
from runtime.language.value import Array, row_major
from runtime.model.blocked_layout import BlockedLayout, Indices
from runtime.model.placement import Span

Index = int | slice | EllipsisType | tuple[int | slice | EllipsisType, ...]


@dataclass(frozen=True)
class Selection:
    """The (start, stop) that an index selects along each axis, and the shape of the result.

    An integer selects one element of its axis, and `shape` leaves the axis out.
    """

    spans: tuple[Span, ...]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """The part of a selection that lies in one shard.

    `index` locates the block in the selection, before axes are left out; a block of `in_range` has
    one axis and is located in the flattened selection. `runs` are the contiguous (start, stop) that
    hold it, in elements of the shard's memory. `order` lists the elements of the flat, row-major
    block in the order of memory, or is the layout of a whole shard.
    """

    index: tuple[slice, ...]
    shape: tuple[int, ...]
    runs: tuple[Span, ...]
    order: Indices | slice | BlockedLayout

    def packed(self, elements: Array) -> Array:
        """The elements of the block, flat, in the order of memory."""
        if isinstance(self.order, BlockedLayout):
            return self.order.packed(elements)
        return elements.reshape(-1)[self.order]

    def unpacked(self, flat: Array) -> Array:
        """The block with these elements in memory: the inverse of `packed`."""
        if isinstance(self.order, BlockedLayout):
            return self.order.unpacked(flat, self.shape)
        elements = np.empty(flat.size, flat.dtype)
        elements[self.order] = flat
        return elements.reshape(self.shape)


def select(index: Index, shape: tuple[int, ...]) -> Selection:
    """The elements of a tensor of `shape` that `index` selects; `IndexError` as in PyTorch,
    `ValueError` for a step other than 1.
    """
    axes: list[Any] = list(index) if isinstance(index, tuple) else [index]
    # By identity: an array among the indices would compare element by element.
    ellipses = [axis for axis, each in enumerate(axes) if each is ...]
    if len(ellipses) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    missing = len(shape) - (len(axes) - len(ellipses))
    if missing < 0:
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}")
    # PyTorch appends an ellipsis to an index without one.
    first = ellipses[0] if ellipses else len(axes)
    axes[first : first + 1] = [slice(None)] * missing
    spans = tuple(
        _span(each, axis, length)
        for axis, (each, length) in enumerate(zip(axes, shape, strict=True))
    )
    kept = (
        stop - start
        for each, (start, stop) in zip(axes, spans, strict=True)
        if isinstance(each, slice)
    )
    return Selection(spans, tuple(kept))


def positions_of(selected: Sequence[Span], shape: Sequence[int]) -> Indices | range:
    """The ascending positions of the selected elements among the row-major elements of `shape`."""
    strides = row_major(shape)
    lengths = [stop - start for start, stop in selected]
    count = prod(lengths)
    if not count:
        return range(0)
    first = sum(start * stride for (start, _), stride in zip(selected, strides, strict=True))
    last = sum((stop - 1) * stride for (_, stop), stride in zip(selected, strides, strict=True))
    # Without gaps, no table of positions is needed.
    if last - first + 1 == count:
        return range(first, last + 1)
    positions = np.zeros((1,) * len(shape), np.int64)
    for axis, ((start, stop), stride) in enumerate(zip(selected, strides, strict=True)):
        along = np.arange(start, stop) * stride
        positions = positions + along.reshape(
            [-1 if each == axis else 1 for each in range(len(shape))]
        )
    return positions.reshape(-1)


def in_range(positions: Indices | range, first: int, last: int) -> Block | None:
    """The part of a selection in a shard that holds the row-major elements [first, last) in their
    order; None if there is none.
    """
    if isinstance(positions, range):
        low, high = max(positions.start, first), min(positions.stop, last)
        start, stop, runs = (
            low - positions.start,
            high - positions.start,
            ((low - first, high - first),),
        )
    else:
        start, stop = (int(each) for each in np.searchsorted(positions, (first, last)))
        runs = () if start == stop else _runs(positions[start:stop] - first)
    if start >= stop:
        return None
    return Block((slice(start, stop),), (stop - start,), runs, slice(None))


def block_of(
    selected: Sequence[Span],
    shard: Sequence[Span],
    layout: BlockedLayout | None,
) -> Block | None:
    """The part of the selected spans that lies in a shard with these spans; None if there is
    none.
    """
    pairs = list(zip(selected, shard, strict=True))
    spans = [(max(a, c), min(b, d)) for (a, b), (c, d) in pairs]
    if any(start >= stop for start, stop in spans):
        return None
    index = tuple(
        slice(start - a, stop - a) for (start, stop), (a, _) in zip(spans, selected, strict=True)
    )
    shape = tuple(stop - start for start, stop in spans)
    local = tuple(
        slice(start - c, stop - c) for (start, stop), (c, _) in zip(spans, shard, strict=True)
    )
    # The common case, a whole shard, is one run, and needs no table of positions.
    if spans == list(shard):
        if layout is not None:
            layout.check(shape)
        return Block(index, shape, ((0, prod(shape)),), layout or slice(None))
    of_shard = tuple(stop - start for start, stop in shard)
    positions = (
        np.arange(prod(of_shard)).reshape(of_shard)
        if layout is None
        else layout.positions(of_shard)
    )
    flat = positions[local].reshape(-1)
    # Sorted by position, elements that are adjacent in memory form runs, and each run is one
    # request.
    order = np.argsort(flat)
    return Block(index, shape, _runs(flat[order]), order)


def _runs(positions: Indices) -> tuple[Span, ...]:
    """The contiguous runs of ascending positions."""
    breaks = np.flatnonzero(np.diff(positions) != 1) + 1
    return tuple((int(run[0]), int(run[-1]) + 1) for run in np.split(positions, breaks))


def _span(index: object, axis: int, length: int) -> Span:
    if isinstance(index, slice):
        start, stop, step = index.indices(length)
        if step != 1:
            raise ValueError(f"slices of tensors have step 1, not {step}")
        return start, max(start, stop)
    # bool is a subclass of int, and an array or a tensor of one element converts to int; PyTorch
    # gives them a meaning (masks, gathers) that kernbench does not have.
    shape = getattr(index, "shape", None)
    if isinstance(shape, tuple) and (shape or getattr(index, "dtype", None) == boolean):
        # A tensor of one element converts to an int, as an array does.
        problem = f"not with a tensor or an array of shape {shape}"
        advice = "x.numpy()[mask.numpy()] reads with a mask or a list of positions"
        raise IndexError(
            f"a tensor is indexed with integers, slices and an ellipsis, {problem}; {advice}"
        )
    if isinstance(index, bool | np.bool) or not isinstance(index, SupportsIndex):
        raise IndexError(
            f"a tensor is indexed with integers, slices and an ellipsis, not with {index!r}"
        )
    position = index.__index__()
    if not -length <= position < length:
        problem = f"is out of bounds for dimension {axis} with size {length}"
        raise IndexError(f"index {position} {problem}")
    return position % length, position % length + 1
