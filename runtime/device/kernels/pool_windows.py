"""The windows of a pool: which elements of an axis belong to which window, and the elements of a
block in the scratch that have one place in their windows.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value

Span = tuple[int, int]


class WindowAxis(NamedTuple):
    """An axis of `length` elements, and the `total` windows along it. Window w has `size` elements,
    the first one is w * `step` - `margin`, the next ones are `apart`.
    """

    length: int
    total: int
    size: int
    step: int
    margin: int
    apart: int

    def offset(self, place: int) -> int:
        """The element at a place of window 0, which may lie before the axis."""
        return place * self.apart - self.margin

    def with_element(self, place: int, windows: Span, elements: Span) -> Span:
        """The windows, of those given, whose element at `place` is one of `elements`."""
        (first, last), (start, end), offset = windows, elements, self.offset(place)
        return max(first, -((offset - start) // self.step)), min(
            last, (end - 1 - offset) // self.step + 1
        )

    def elements(self, windows: Span) -> Span:
        """The elements of the axis in which windows lie."""
        first, last = windows
        end = (last - 1) * self.step + self.offset(self.size - 1) + 1
        return max(first * self.step - self.margin, 0), min(end, self.length)

    def windows(self, elements: Span) -> Span:
        """The windows that may have some of the elements."""
        (start, end), reach = elements, self.offset(self.size - 1)
        first = max(-((reach - start) // self.step), 0)
        return first, max(first, min((end - 1 + self.margin) // self.step + 1, self.total))


class PoolPiece(NamedTuple):
    """Part of a pool that a PE computes at once: rows `span` of `planes` planes of the result, from
    `plane` on. Each of `sources` is the first of as many planes that it reads, and the number of
    the first element of that plane among those of all axes. `depth` is the length of a window along
    the axis of the planes.
    """

    plane: int
    planes: int
    span: Span
    sources: tuple[tuple[int, int], ...]
    depth: int


class PoolShape(NamedTuple):
    """The last two axes of a pool."""

    rows: WindowAxis
    columns: WindowAxis

    def places(self) -> Iterator[Span]:
        """The places in a window, row by row."""
        return product(range(self.rows.size), range(self.columns.size))


def padded_block(planes: int, height: int, width: int, pool: PoolShape, dtype: DType) -> Value:
    """A block of planes with room behind each row and each plane, so that every `windowed` view
    lies in it.
    """
    shape = (planes, height + pool.rows.step - 1, width + pool.columns.step - 1)
    return tl.empty(shape, dtype)


def loaded_planes(
    source: Pointer, piece: tuple[int, int, Span], width: int, pitch: int, out: Value
) -> Value:
    """Load rows of planes (number, count, rows) of `pitch` elements to a part of `out`."""
    plane, planes, (first, last) = piece
    part = out[:, : last - first, :width]
    start = source + plane * pitch + first * width
    return tl.load(start, (planes, last - first, width), (pitch, width, 1), out=part)


class Windowed(NamedTuple):
    """The windows (rows, columns) whose element at one place lies in a block of elements, and these
    elements of the block, as a view.
    """

    rows: Span
    columns: Span
    view: Value


def windowed(
    block: Value, pool: PoolShape, place: Span, rows: tuple[Span, Span], columns: Span
) -> Windowed | None:
    """The elements at one place of windows. `rows` are the windows and the elements of the block,
    `columns` the windows of whole rows. None if there are none.
    """
    (row, column), (windows, elements) = place, rows
    down = pool.rows.with_element(row, windows, elements)
    across = pool.columns.with_element(column, columns, (0, pool.columns.length))
    (top, bottom), (left, right) = down, across
    if top >= bottom or left >= right:
        return None
    first = top * pool.rows.step + pool.rows.offset(row) - elements[0]
    start = left * pool.columns.step + pool.columns.offset(column)
    high, wide = bottom - top, right - left
    part = block[:, first : first + high * pool.rows.step, start : start + wide * pool.columns.step]
    planes = part.shape[0]
    split = part.reshape(planes, high, pool.rows.step, wide, pool.columns.step)
    return Windowed(down, across, split[:, :, :1, :, :1].reshape(planes, high, wide))
