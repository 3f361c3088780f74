"""Numbers of the host side: program ids, arguments, and blocks of indices, addresses and masks.

Most blocks of a kernel are *affine*, start + sum(index x step), and most masks are *boxes*, ranges
of indices along the axes. Both are kept as these numbers, so the addresses of a block cost no array
of addresses; anything else is an array of numpy. An `IndexValue` also has its *recipe*, by which it
can be computed again as a value in TCM.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from kernbench.triton.indices.element_types import array_type, type_name

Array = np.ndarray[Any, np.dtype[Any]]
Shape = tuple[int, ...]


class Affine(NamedTuple):
    """The numbers start + sum(index x step), with a step for each axis."""

    start: Any
    steps: tuple[int, ...]

    def extremes(self, shape: Shape) -> tuple[int, int]:
        """The least and the greatest number of a block of `shape`."""
        spans = [step * (length - 1) for step, length in zip(self.steps, shape, strict=True)]
        low = sum(each for each in spans if each < 0)
        return self.start + low, self.start + sum(spans) - low


class Recipe(NamedTuple):
    """The operation of the builder and the operands that made a value."""

    make: Callable[..., Any]
    operands: tuple[Any, ...]


Box = tuple[tuple[int, int], ...]
"""The indices for which a mask is true, along each axis: the first, and that behind the last."""


class IndexValue:
    """A scalar or a block on the host side; `dtype` is Triton's.

    Exactly one of `affine`, `box` (of bools) and the array is given.
    """

    __slots__ = ("_array", "affine", "box", "dtype", "in_tcm", "recipe", "shape")

    def __init__(
        self,
        dtype: Any,
        shape: Shape,
        *,
        affine: Affine | None = None,
        box: Box | None = None,
        array: Array | None = None,
        recipe: Recipe | None = None,
    ) -> None:
        self.dtype, self.shape = dtype, shape
        self.affine, self.box, self._array, self.recipe = affine, box, array, recipe
        self.in_tcm: Any = None
        """The same elements as a value in TCM, once a command has needed them there."""

    @classmethod
    def constant(cls, dtype: Any, number: Any, shape: Shape = ()) -> "IndexValue":
        """One number everywhere."""
        return cls(dtype, shape, affine=Affine(number, (0,) * len(shape)))

    @property
    def array(self) -> Array:
        """The elements, row-major; do not write to them."""
        if self._array is None:
            self._array = self._made()
        return self._array

    @property
    def number(self) -> Any:
        """The number that all elements are; None if they differ."""
        if self.affine is not None:
            # An axis of length 1 has no second element.
            if all(
                not step or length == 1
                for step, length in zip(self.affine.steps, self.shape, strict=True)
            ):
                return self.affine.start
            return None
        if self.box is not None:
            if all(span == (0, n) for span, n in zip(self.box, self.shape, strict=True)):
                return True
            return False if any(stop <= start for start, stop in self.box) else None
        flat = self.array.reshape(-1)
        return flat[0].item() if flat.size and bool((flat == flat[0]).all()) else None

    @property
    def numel(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    def _made(self) -> Array:
        if self.box is not None:
            mask = np.ones(self.shape, bool)
            for axis, ((start, stop), length) in enumerate(zip(self.box, self.shape, strict=True)):
                index = np.arange(length)
                inside = (index >= start) & (index < stop)
                mask &= inside.reshape([length if each == axis else 1 for each in range(mask.ndim)])
            return mask
        assert self.affine is not None
        kind, (start, steps) = array_type(type_name(self.dtype)), self.affine
        if not any(steps):
            return np.full(self.shape, start).astype(kind)
        total = np.asarray(start, np.int64)
        for axis, (step, length) in enumerate(zip(steps, self.shape, strict=True)):
            if step:
                row = np.arange(length, dtype=np.int64) * step
                lengths = [length if each == axis else 1 for each in range(len(steps))]
                total = total + row.reshape(lengths)
        return np.broadcast_to(total, self.shape).astype(kind)

    def set_attr(self, name: str, value: object) -> None:
        """Take an attribute of the compiler, from which nothing is inferred here."""


def expanded(value: IndexValue, axis: int, recipe: Recipe) -> IndexValue:
    """A new axis of length 1."""
    shape = (*value.shape[:axis], 1, *value.shape[axis:])
    if value.affine is not None:
        start, steps = value.affine
        affine = Affine(start, (*steps[:axis], 0, *steps[axis:]))
        return IndexValue(value.dtype, shape, affine=affine)
    if value.box is not None:
        box = (*value.box[:axis], (0, 1), *value.box[axis:])
        return IndexValue(value.dtype, shape, box=box, recipe=recipe)
    return IndexValue(value.dtype, shape, array=value.array.reshape(shape), recipe=recipe)


def broadcast(value: IndexValue, shape: Shape, recipe: Recipe) -> IndexValue:
    """The elements repeated along axes of length 1; a scalar fills a block."""
    if not value.shape:
        value = _with_axes(value, len(shape))
    if value.shape == shape:
        return value
    lengths = tuple(zip(value.shape, shape, strict=True))
    if value.affine is not None:
        start, steps = value.affine
        kept = tuple(0 if old == 1 else step for step, (old, _) in zip(steps, lengths, strict=True))
        return IndexValue(value.dtype, shape, affine=Affine(start, kept))
    if value.box is not None:
        box = tuple(
            ((0, new) if span == (0, 1) else (0, 0)) if old == 1 != new else span
            for span, (old, new) in zip(value.box, lengths, strict=True)
        )
        return IndexValue(value.dtype, shape, box=box, recipe=recipe)
    array = np.broadcast_to(value.array, shape)
    return IndexValue(value.dtype, shape, array=array, recipe=recipe)


def _with_axes(value: IndexValue, axes: int) -> IndexValue:
    shape = (1,) * axes
    if value.affine is not None:
        return IndexValue(value.dtype, shape, affine=Affine(value.affine.start, (0,) * axes))
    if value.box is not None:
        return IndexValue(value.dtype, shape, affine=Affine(bool(value.number), (0,) * axes))
    return IndexValue(value.dtype, shape, array=value.array.reshape(shape), recipe=value.recipe)


def rearranged(value: IndexValue, permutation: Sequence[int], recipe: Recipe) -> IndexValue:
    """The axes in another order."""
    shape = tuple(value.shape[each] for each in permutation)
    if value.affine is not None:
        start, steps = value.affine
        affine = Affine(start, tuple(steps[each] for each in permutation))
        return IndexValue(value.dtype, shape, affine=affine)
    if value.box is not None:
        box = tuple(value.box[each] for each in permutation)
        return IndexValue(value.dtype, shape, box=box, recipe=recipe)
    array = value.array.transpose(permutation)
    return IndexValue(value.dtype, shape, array=array, recipe=recipe)


def reshaped(value: IndexValue, shape: Shape, recipe: Recipe) -> IndexValue:
    """The elements in row-major order with another shape."""
    if (number := value.number) is not None and value.box is None:
        return IndexValue.constant(value.dtype, number, shape)
    if value.affine is not None and (steps := _split_steps(value, shape)) is not None:
        return IndexValue(value.dtype, shape, affine=Affine(value.affine.start, steps))
    return IndexValue(value.dtype, shape, array=value.array.reshape(shape), recipe=recipe)


def _split_steps(value: IndexValue, shape: Shape) -> tuple[int, ...] | None:
    """The steps of a block with one axis of several elements, cut into the axes of `shape`."""
    assert value.affine is not None
    long = [axis for axis, length in enumerate(value.shape) if length > 1]
    if len(long) > 1:
        return None
    step, steps = (value.affine.steps[long[0]] if long else 0), list[int]()
    for length in reversed(shape):
        steps.append(step)
        step *= length
    return tuple(reversed(steps))
