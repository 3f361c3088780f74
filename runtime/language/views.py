"""Views of a block: slices, new axes, other shapes and transposition, by strides alone.

A view takes no time: it is another description of the same elements, as in numpy. Shapes, strides
and offsets count elements.
"""

from collections.abc import Sequence
from math import prod
from operator import index
from types import EllipsisType
from typing import NamedTuple, SupportsIndex

from runtime.core.strided_axes import merged_axes

Index = slice | EllipsisType | None


class View(NamedTuple):
    """The axes of a view; its first element is `offset` elements behind that of the block."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0


def sliced(
    shape: tuple[int, ...], strides: tuple[int, ...], given: Index | tuple[Index, ...]
) -> View:
    """The part that contiguous ranges select; `None` makes an axis of length 1."""
    axes = list(given) if isinstance(given, tuple) else [given]
    # By identity: `in` would compare.
    if any(each is ... for each in axes):
        first, named = _first_ellipsis(axes), sum(isinstance(each, slice) for each in axes)
        axes[first : first + 1] = [slice(None)] * (len(shape) - named)
    lengths, steps, offset, axis = list[int](), list[int](), 0, 0
    for each in axes:
        if each is None:
            lengths.append(1)
            # The only index of an axis of length 1 is 0, so any stride is right.
            steps.append(0)
            continue
        if axis == len(shape):
            raise IndexError(f"a value of shape {shape} has {axis} axes, more are indexed")
        start, length = _range(each, shape[axis])
        lengths.append(length)
        steps.append(strides[axis])
        offset += start * strides[axis]
        axis += 1
    return View((*lengths, *shape[axis:]), (*steps, *strides[axis:]), offset)


def whole_shape(shape: tuple[int, ...], given: Sequence[object]) -> tuple[int, ...]:
    """The shape that a block of `shape` shall have: one length of -1 is what the others leave."""
    lengths = list[int]()
    for each in given:
        # The usual type first: the test of a protocol takes 3 us.
        if type(each) is not int and not isinstance(each, SupportsIndex):
            raise TypeError(f"reshape: {each!r} is not the length of an axis, an integer")
        lengths.append(index(each))
    count, known = prod(shape), prod(length for length in lengths if length != -1)
    if lengths.count(-1) == 1 and known > 0 and count % known == 0:
        lengths[lengths.index(-1)] = count // known
    whole = tuple(lengths)
    if min(whole, default=0) < 0 or prod(whole) != count:
        raise ValueError(
            f"reshape: a value of shape {shape} has {count:,} elements, which shape "
            f"{tuple(given)} does not hold"
        )
    return whole


def reshaped(
    shape: tuple[int, ...], strides: tuple[int, ...], whole: tuple[int, ...]
) -> View | None:
    """The same elements in the same order with another shape; None if no strides describe them."""
    if 0 in whole:
        return View(whole, (0,) * len(whole))
    axes, steps = merged_axes(shape, strides), list[int]()
    left = step = 1
    # From the innermost axis on, lengths of the new shape divide the axes that are one in memory.
    for length in reversed(whole):
        if left == 1 and length > 1 and axes:
            left, step = axes.pop()
        if left % length:
            return None
        steps.append(step)
        step, left = step * length, left // length
    return View(whole, tuple(reversed(steps)))


def expanded(shape: tuple[int, ...], strides: tuple[int, ...], axis: object) -> View:
    """A new axis of length 1, as number `axis` of the result."""
    most = len(shape)
    if type(axis) is not int and not isinstance(axis, SupportsIndex):
        raise TypeError(f"expand_dims: axis {axis!r} is not an integer")
    position = index(axis)
    if not -most - 1 <= position <= most:
        raise ValueError(
            f"expand_dims: axis {position} does not exist in the result, whose axes are "
            f"{-most - 1} to {most}"
        )
    position %= most + 1
    return View(
        (*shape[:position], 1, *shape[position:]), (*strides[:position], 0, *strides[position:])
    )


def transposed(shape: tuple[int, ...], strides: tuple[int, ...]) -> View:
    """The last two axes exchanged."""
    if len(shape) < 2:
        raise ValueError(f"mT: a value of shape {shape} is no matrix")
    return View((*shape[:-2], *shape[:-3:-1]), (*strides[:-2], *strides[:-3:-1]))


def _first_ellipsis(axes: Sequence[object]) -> int:
    return next(number for number, each in enumerate(axes) if each is ...)


def _range(given: object, length: int) -> tuple[int, int]:
    if not isinstance(given, slice):
        raise TypeError(f"a value in TCM is indexed with slices and None, not {given!r}")
    start, stop, step = given.indices(length)
    if step != 1:
        raise ValueError(f"a value in TCM can be sliced with step 1 only, not {step}")
    return start, max(stop - start, 0)
