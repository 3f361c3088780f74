"""Blocks of addresses as the fewest DMA descriptors.

1. An affine block whose mask is a box is one descriptor: rows at up to two pitches, clipped.
2. Where only the leading axes are irregular, the blocks behind them are rows: neighbours at one
   pitch are one descriptor, others are one request with a list of rows.
3. What is left are runs of elements, at worst single ones, which are slow: they are counted.

The block in TCM has its axes in the order of memory, so that a transposed block of pointers is no
transposed transfer: the value is a view.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from kernbench.triton.indices.index_values import Array, Box, IndexValue, Shape
from kernbench.triton.tape.tape import GatheredRows, Part, TapeCounts
from runtime.core.dtypes import DType
from runtime.core.strided_axes import MOST_AXES, descriptor_axes
from runtime.language.value import Pointer, row_major
from runtime.language.views import View


class BlockTransfer(NamedTuple):
    """A block of pointers as descriptors.

    The storage has the shape `stored`, whose axes are those of the block in the `order` of memory,
    in an irregular block None; `view` is the block in it, with axes of length 1 where all
    addresses along an axis are equal. `rest` are the parts of the storage that no descriptor
    covers, None if they are to be chosen by the mask.
    """

    stored: Shape
    order: tuple[int, ...] | None
    view: View
    boxes: tuple[Part, ...]
    rows: tuple[GatheredRows, ...]
    rest: tuple[View, ...] | None
    counts: TapeCounts


def transfer(pointers: IndexValue, mask: IndexValue | None, dtype: DType) -> BlockTransfer:
    """The descriptors of a block; at least one of its addresses is not masked."""
    box = _whole_box(pointers.shape) if mask is None else _box_of(mask)
    if pointers.affine is not None and box is not None:
        planned = _boxed(pointers, box, dtype)
        if planned is not None:
            return planned
    given = np.ones(pointers.shape, bool) if mask is None else mask.array
    return _irregular(pointers.array, np.broadcast_to(given, pointers.shape), dtype)


def _whole_box(shape: Shape) -> Box:
    return tuple((0, length) for length in shape)


def _box_of(mask: IndexValue) -> Box | None:
    if mask.box is not None:
        return mask.box
    return _whole_box(mask.shape) if mask.number is True else None


def _boxed(pointers: IndexValue, box: Box, dtype: DType) -> BlockTransfer | None:
    """The transfer of an affine block, of which a box is not masked."""
    assert pointers.affine is not None
    item, (start, bytes_of) = dtype.itemsize, pointers.affine
    if start % item or any(each % item for each in bytes_of):
        raise ValueError(_misaligned(start, dtype))
    steps = [each // item for each in bytes_of]
    lengths, spans = list(pointers.shape), list(box)
    for axis, step in enumerate(steps):
        if step < 0 and lengths[axis] > 1:
            return None
        if not step and lengths[axis] > 1:
            if spans[axis] != (0, lengths[axis]):
                return None
            lengths[axis], spans[axis] = 1, (0, 1)
    order = sorted(range(len(steps)), key=lambda axis: (lengths[axis] == 1, -steps[axis], axis))
    stored = tuple(lengths[axis] for axis in order)
    strides = tuple(steps[axis] if lengths[axis] > 1 else 0 for axis in order)
    inner = tuple(spans[axis] for axis in order)
    if _overlaps(stored, strides):
        return None
    first = Pointer(start, dtype) + sum(
        low * step for (low, _), step in zip(inner, strides, strict=True)
    )
    whole = row_major(stored)
    part = _part_of(inner, whole)
    boxes = _described(part, first, strides)
    view = _ordered(stored, order)
    counts = TapeCounts(boxes=len(boxes))
    rest = tuple(_around(stored, inner))
    return BlockTransfer(stored, tuple(order), view, tuple(boxes), (), rest, counts)


def _misaligned(address: int, dtype: DType) -> str:
    return (
        f"address {address:#x} is no multiple of the {dtype.itemsize} bytes of {dtype.name}: "
        "pointers are moved by whole elements"
    )


def _overlaps(shape: Shape, strides: tuple[int, ...]) -> bool:
    span = 1
    for stride, length in sorted(zip(strides, shape, strict=True)):
        if length > 1 and stride < span:
            return True
        span += (length - 1) * stride
    return False


def _part_of(spans: Sequence[tuple[int, int]], strides: tuple[int, ...]) -> View:
    offset = sum(low * step for (low, _), step in zip(spans, strides, strict=True))
    return View(tuple(high - low for low, high in spans), strides, offset)


def _described(part: View, pointer: Pointer, strides: tuple[int, ...]) -> list[Part]:
    """The descriptors of a box: one, or one for each index of the outer axes."""
    if len(descriptor_axes(part.shape, strides)) <= MOST_AXES:
        return [(part, pointer, strides)]
    shape, steps, offset = part
    return [
        each
        for index in range(shape[0])
        for each in _described(
            View(shape[1:], steps[1:], offset + index * steps[0]),
            pointer + index * strides[0],
            strides[1:],
        )
    ]


def _ordered(stored: Shape, order: Sequence[int]) -> View:
    """The view of a storage whose axis i is axis `order[i]` of the block."""
    strides, shape = [0] * len(order), [0] * len(order)
    for axis, length, step in zip(order, stored, row_major(stored), strict=True):
        shape[axis], strides[axis] = length, step
    return View(tuple(shape), tuple(strides))


def _around(shape: Shape, box: Sequence[tuple[int, int]]) -> list[View]:
    """The elements of a block outside of a box, as disjoint boxes."""
    strides, parts, spans = row_major(shape), list[View](), [(0, each) for each in shape]
    for axis, (low, high) in enumerate(box):
        for span in ((0, low), (high, shape[axis])):
            if span[0] < span[1]:
                parts.append(_part_of([*spans[:axis], span, *spans[axis + 1 :]], strides))
        spans[axis] = (low, high)
    return parts


def _irregular(addresses: Array, mask: Array, dtype: DType) -> BlockTransfer:
    """The transfer of any addresses: rows of the longest regular block, or runs of elements."""
    item = dtype.itemsize
    if bool(np.any(addresses[mask] % item)):
        raise ValueError(_misaligned(int(addresses[mask][0]), dtype))
    shape = addresses.shape
    numbers = addresses // item
    axes = _regular_axes(numbers, mask)
    lead, inner = shape[: len(shape) - axes], shape[len(shape) - axes :]
    strides = tuple(
        int(numbers.reshape(-1)[step]) - int(numbers.reshape(-1)[0]) if length > 1 else 0
        for length, step in zip(inner, row_major(inner), strict=True)
    )
    starts = numbers.reshape(prod(lead), -1)[:, 0]
    is_used = mask.reshape(prod(lead), -1)[:, 0]
    boxes, rows, counts = list[Part](), list[GatheredRows](), TapeCounts()
    for first, stop, pitch in _runs(starts, is_used):
        if pitch is not None:
            view = View(
                (stop - first, *inner), row_major((prod(lead), *inner)), first * prod(inner)
            )
            target = Pointer(int(starts[first]) * item, dtype)
            boxes += _described(view, target, (pitch if stop - first > 1 else 0, *strides))
    counts.boxes = len(boxes)
    for first, stop in _stretches(starts, is_used):
        view = View((stop - first, *inner), row_major((prod(lead), *inner)), first * prod(inner))
        base = int(starts[first:stop].min())
        taken = tuple(int(each) - base for each in starts[first:stop])
        rows.append(GatheredRows(view, Pointer(base * item, dtype), taken, inner, strides))
        if prod(inner) == 1:
            counts.elements += len(taken)
        else:
            counts.rows += len(taken)
    rest = () if bool(mask.all()) else None
    view = View(shape, row_major(shape))
    return BlockTransfer(shape, None, view, tuple(boxes), tuple(rows), rest, counts)


def _regular_axes(numbers: Array, mask: Array) -> int:
    """The number of inner axes along which all addresses have the same positive steps and the mask
    does not change.
    """
    for axes in range(numbers.ndim - 1, 0, -1):
        inner = numbers.shape[numbers.ndim - axes :]
        flat = numbers.reshape(-1, prod(inner))
        masks = mask.reshape(-1, prod(inner))
        if not bool((masks == masks[:, :1]).all()):
            continue
        offsets = flat - flat[:, :1]
        if not bool((offsets == offsets[:1]).all()):
            continue
        row = offsets[0].reshape(inner)
        steps = tuple(
            int(row.reshape(-1)[step]) if length > 1 else 0
            for length, step in zip(inner, row_major(inner), strict=True)
        )
        grid = np.zeros(inner, np.int64)
        for axis, (length, step) in enumerate(zip(inner, steps, strict=True)):
            lengths = [length if each == axis else 1 for each in range(axes)]
            grid += np.asarray([index * step for index in range(length)]).reshape(lengths)
        is_affine = bool((grid == row).all())
        if is_affine and min(steps) >= 0 and not _overlaps(inner, steps):
            return axes
    return 0


_LEAST_RUN = 4
"""GatheredRows at one pitch that are worth a descriptor of their own beside a list of rows."""


def _all_runs(starts: Array, is_used: Array) -> list[tuple[int, int, int | None]]:
    """GatheredRows from `first` before `stop` at one pitch; None for those of a list of rows."""
    runs, first, count = list[tuple[int, int, int | None]](), 0, len(starts)
    while first < count:
        if not is_used[first]:
            first += 1
            continue
        stop, pitch = first + 1, 0
        while stop < count and is_used[stop]:
            step = int(starts[stop]) - int(starts[stop - 1])
            if step <= 0 or (pitch and step != pitch):
                break
            pitch = step
            stop += 1
        runs.append((first, stop, pitch))
        first = stop
    return runs


def _runs(starts: Array, is_used: Array) -> list[tuple[int, int, int | None]]:
    runs = _all_runs(starts, is_used)
    if len(runs) <= 2:
        return runs
    return [each for each in runs if each[1] - each[0] >= _LEAST_RUN]


def _stretches(starts: Array, is_used: Array) -> list[tuple[int, int]]:
    """Neighbouring rows that are in no run."""
    covered = np.zeros(len(starts), bool)
    for first, stop, _ in _runs(starts, is_used):
        covered[first:stop] = True
    left = is_used & ~covered
    edges = np.flatnonzero(np.diff(np.concatenate(([False], left, [False])).astype(np.int8)))
    return [(int(first), int(stop)) for first, stop in edges.reshape(-1, 2)]


def stored_parts(plan: BlockTransfer, source: View) -> list[Part]:
    """The boxes of a store from a view of a value, whose axes are those of the storage of the plan:
    a list of rows is one box for each.
    """
    parts: list[Part] = [
        (_composed(source, plan.stored, view), pointer, strides)
        for view, pointer, strides in plan.boxes
    ]
    for each in plan.rows:
        shape, strides, offset = each.view
        parts += [
            (
                View(shape[1:], strides[1:], source.offset + offset + index * strides[0]),
                each.pointer + number,
                each.strides,
            )
            for index, number in enumerate(each.numbers)
        ]
    return parts


def _composed(source: View, stored: Shape, part: View) -> View:
    """A box of a row-major block of shape `stored`, as a view of the source of its elements."""
    if source.strides == row_major(stored):
        return View(part.shape, part.strides, source.offset + part.offset)
    # A box has the last axes of the block: descriptors of few axes leave out the outer ones.
    left, offset = part.offset, source.offset
    for step, own in zip(row_major(stored), source.strides, strict=True):
        index, left = divmod(left, step)
        offset += index * own
    strides = source.strides[len(source.strides) - len(part.shape) :]
    return View(part.shape, strides, offset)


def any_used(mask: IndexValue | None) -> bool:
    """Whether a mask is true anywhere."""
    if mask is None:
        return True
    if mask.box is not None:
        return all(low < high for low, high in mask.box)
    return bool(mask.array.any()) if mask.number is None else bool(mask.number)


def described_mask(mask: IndexValue | None) -> str:
    """A mask in messages."""
    if mask is None:
        return "without a mask"
    return f"mask: {int(mask.array.sum()):,} of {mask.numel:,} elements"
