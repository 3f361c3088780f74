"""Shapes of the builder: views of numbers of the host side and of values in TCM."""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

from kernbench.triton import triton_api
from kernbench.triton.builder.program import DeviceValue, Handle, running
from kernbench.triton.indices.index_values import (
    Affine,
    IndexValue,
    Recipe,
    Shape,
    broadcast,
    expanded,
    rearranged,
    reshaped,
)
from kernbench.triton.tape.tape import TapeBlock, TapeStorage
from runtime.language import views
from runtime.language.running import MathOptions
from runtime.language.value import row_major
from runtime.language.views import View

_language = triton_api.module("triton.language")


def shape_of(lengths: Sequence[Any]) -> Shape:
    """A shape of integers."""
    return tuple(int(getattr(each, "value", each)) for each in lengths)


def repeated(value: Handle, shape: Shape) -> Handle:
    """A value repeated along axes of length 1; a scalar fills a block."""
    if isinstance(value, IndexValue):
        return broadcast(value, shape, Recipe(partial(repeated, shape=shape), (value,)))
    block = value.block
    if not value.shape:
        lengths = (1,) * len(shape)
        block = TapeBlock(block.storage, View(lengths, (0,) * len(lengths), block.view.offset))
    return DeviceValue(value.dtype, block, shape)


def with_axis(value: Handle, axis: int) -> Handle:
    """A value with a new axis of length 1."""
    if isinstance(value, IndexValue):
        return expanded(value, axis, Recipe(partial(with_axis, axis=axis), (value,)))
    block = value.block
    view = views.expanded(block.view.shape, block.view.strides, axis)
    moved = TapeBlock(block.storage, View(view.shape, view.strides, block.view.offset))
    return DeviceValue(value.dtype, moved, (*value.shape[:axis], 1, *value.shape[axis:]))


def with_shape(value: Handle, shape: Shape) -> Handle:
    """The elements in row-major order with another shape: a view where strides describe it."""
    if isinstance(value, IndexValue):
        return reshaped(value, shape, Recipe(partial(with_shape, shape=shape), (value,)))
    program = running()
    if prod(value.block.shape) == 1:
        lengths = (1,) * len(shape)
        view = View(lengths, (0,) * len(lengths), value.block.view.offset)
        return DeviceValue(value.dtype, TapeBlock(value.block.storage, view), shape)
    block = program.whole(value)
    view = views.reshaped(block.view.shape, block.view.strides, shape)
    if view is None:
        block = program.math("cat", (block,))
        view = View(shape, row_major(shape))
    moved = View(view.shape, view.strides, block.view.offset)
    return DeviceValue(value.dtype, TapeBlock(block.storage, moved), shape)


def with_order(value: Handle, permutation: Sequence[int]) -> Handle:
    """The axes in another order: a view."""
    if isinstance(value, IndexValue):
        recipe = Recipe(partial(with_order, permutation=permutation), (value,))
        return rearranged(value, permutation, recipe)
    shape, strides, offset = value.block.view
    view = View(
        tuple(shape[each] for each in permutation),
        tuple(strides[each] for each in permutation),
        offset,
    )
    lengths = tuple(value.shape[each] for each in permutation)
    return DeviceValue(value.dtype, TapeBlock(value.block.storage, view), lengths)


def part(value: Handle, axis: int, first: int, stop: int) -> Handle:
    """The elements from one index before another along an axis."""
    if isinstance(value, IndexValue):
        lengths = tuple(stop - first if each == axis else n for each, n in enumerate(value.shape))
        if value.affine is not None:
            start, steps = value.affine
            affine = Affine(start + first * steps[axis] if steps[axis] else start, steps)
            return IndexValue(value.dtype, lengths, affine=affine)
        index = (slice(None),) * axis + (slice(first, stop),)
        recipe = Recipe(partial(part, axis=axis, first=first, stop=stop), (value,))
        return IndexValue(value.dtype, lengths, array=value.array[index], recipe=recipe)
    shape, strides, offset = value.block.view
    lengths = tuple(stop - first if each == axis else n for each, n in enumerate(value.shape))
    if shape[axis] == 1:
        return DeviceValue(value.dtype, value.block, lengths)
    kept = (*shape[:axis], stop - first, *shape[axis + 1 :])
    view = View(kept, strides, offset + first * strides[axis])
    return DeviceValue(value.dtype, TapeBlock(value.block.storage, view), lengths)


def joined(values: Sequence[Handle], axis: int) -> DeviceValue:
    """Values one behind the other along an axis, as a new value: a copy of each."""
    program = running()
    blocks = [program.whole(program.in_tcm(each)) for each in values]
    total = sum(each.shape[axis] for each in blocks)
    shape = (*blocks[0].shape[:axis], total, *blocks[0].shape[axis + 1 :])
    target = TapeStorage(shape, blocks[0].dtype, pieces=True)
    result, first = DeviceValue(values[0].dtype.scalar, target.whole()), 0
    for block in blocks:
        step = row_major(shape)
        view = View(block.shape, step, first * step[axis])
        options = MathOptions(dtype=block.dtype)
        program.math("cast", (block,), options, target=TapeBlock(target, view))
        first += block.shape[axis]
    return result


class BuilderShapes:
    """Shapes, ranges and repetitions."""

    def create_make_range(self, dtype: Any, start: int, stop: int) -> IndexValue:
        """The integers from `start` before `stop`."""
        del dtype
        return IndexValue(_language.int32, (stop - start,), affine=Affine(start, (1,)))

    def create_splat(self, dtype: Any, value: Handle) -> Handle:
        """A block with one element everywhere."""
        return repeated(value, shape_of(dtype.shape))

    def create_unsplat(self, value: Handle) -> Handle:
        """The element of a block with one."""
        return with_shape(value, ())

    def create_broadcast(self, value: Handle, shape: Sequence[Any]) -> Handle:
        """A block repeated along axes of length 1."""
        return repeated(value, shape_of(shape))

    def create_expand_dims(self, value: Handle, axis: int) -> Handle:
        """A new axis of length 1."""
        return with_axis(value, axis)

    def create_reshape(self, value: Handle, shape: Sequence[Any], *_: object) -> Handle:
        """Another shape."""
        return with_shape(value, shape_of(shape))

    def create_trans(self, value: Handle, permutation: Sequence[int]) -> Handle:
        """Another order of the axes."""
        return with_order(value, shape_of(permutation))

    def create_cat(self, a: Handle, b: Handle) -> Handle:
        """Two blocks one behind the other."""
        return joined((a, b), 0)

    def create_join(self, a: Handle, b: Handle) -> Handle:
        """Two blocks along a new last axis."""
        axis = len(a.shape)
        return joined((with_axis(a, axis), with_axis(b, axis)), axis)

    def create_split(self, value: Handle) -> tuple[Handle, Handle]:
        """The two parts along the last axis, of length 2: views."""
        axis, shape = len(value.shape) - 1, value.shape[:-1]
        first, second = (part(value, axis, each, each + 1) for each in (0, 1))
        return _without_last(first, shape), _without_last(second, shape)


def _without_last(value: Handle, shape: Shape) -> Handle:
    if isinstance(value, IndexValue):
        return with_shape(value, shape)
    block = value.block
    lengths, strides, offset = block.view
    view = View(lengths[:-1], strides[:-1], offset)
    return DeviceValue(value.dtype, TapeBlock(block.storage, view), shape)
