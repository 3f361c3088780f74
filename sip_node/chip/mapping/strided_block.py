"""Blocks of elements as bytes: one contiguous range, or planes of rows of bytes at two pitches.

A DMA descriptor has a start, the bytes of a row, and up to two pitches with the number of rows of a
plane. An operand has a shape and strides, in elements. This module merges the axes of an operand
until a descriptor can hold it.
"""

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import NamedTuple

from runtime.core import dtypes
from runtime.core.strided_axes import MOST_AXES, descriptor_axes, merged_axes
from runtime.core.trace import Operand

BYTES = "u8"
"""The element type of a copy of bytes."""

_ITEM_BYTES = {dtype.name: dtype.itemsize for dtype in dtypes.ALL}


class StridedBlock(NamedTuple):
    """Rows of `row_bytes` that start `pitch` bytes apart; packed, they have no gaps.

    `plane_rows` of them are a plane, and planes start `plane_pitch` bytes apart; with 0 all rows
    are one plane.
    """

    row_bytes: int
    pitch: int
    plane_rows: int = 0
    plane_pitch: int = 0

    def runs(self, start: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """(offset, rows, bytes of each row) of the packed bytes [start, start + nbytes).

        Whole rows of a plane come as one run; a row that is cut at an end is a run by itself.
        """
        if not self.plane_rows:
            yield from self._runs(0, start, nbytes)
            return
        plane_bytes = self.plane_rows * self.row_bytes
        plane, start = divmod(start, plane_bytes)
        while nbytes:
            part = min(plane_bytes - start, nbytes)
            yield from self._runs(plane * self.plane_pitch, start, part)
            plane, start, nbytes = plane + 1, 0, nbytes - part

    def extent(self, nbytes: int) -> int:
        """Bytes from the first to the last one in memory, of a block of `nbytes`."""
        planes, rows = 1, nbytes // self.row_bytes
        if self.plane_rows:
            planes, rows = rows // self.plane_rows, self.plane_rows
        return (planes - 1) * self.plane_pitch + (rows - 1) * self.pitch + self.row_bytes

    def row_offset(self, row: int) -> int:
        """The offset of a row, in bytes from the start of the first one."""
        if not self.plane_rows:
            return row * self.pitch
        plane, row = divmod(row, self.plane_rows)
        return plane * self.plane_pitch + row * self.pitch

    def _runs(self, offset: int, start: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """The runs of one plane, whose first row starts at `offset`."""
        row, skip = divmod(start, self.row_bytes)
        if skip:
            first = min(self.row_bytes - skip, nbytes)
            yield offset + row * self.pitch + skip, 1, first
            row, nbytes = row + 1, nbytes - first
        whole, last = divmod(nbytes, self.row_bytes)
        if whole:
            yield offset + row * self.pitch, whole, self.row_bytes
        if last:
            yield offset + (row + whole) * self.pitch, 1, last


class Layout(NamedTuple):
    """The bytes of a block, and its rows; `rows` is None for a block without gaps."""

    nbytes: int
    rows: StridedBlock | None


def bytes_at(address: int, nbytes: int) -> Operand:
    """`nbytes` of no particular type."""
    return Operand(address, (nbytes,), BYTES)


def item_bytes(dtype: str) -> int:
    """Bytes of one element of a type, by its name in the op log."""
    return _ITEM_BYTES[dtype]


def nbytes_of(block: Operand) -> int:
    """Bytes of the elements of a block."""
    return prod(block.shape) * _ITEM_BYTES[block.dtype]


def layout_of(block: Operand) -> Layout:
    """The bytes and rows of a block; `ValueError` for one with more than two pitches."""
    return _layout(block.shape, block.strides, _ITEM_BYTES[block.dtype])


def is_packed(block: Operand) -> bool:
    """Whether the elements of a block follow each other in memory without gaps."""
    return not block.strides or merged_axes(block.shape, block.strides) in (
        [],
        [(prod(block.shape), 1)],
    )


def end_of(block: Operand) -> int:
    """The address behind the last byte of a block, whose strides are not negative."""
    if is_packed(block) or not block.strides:
        return block.address + nbytes_of(block)
    axes = zip(block.shape, block.strides, strict=True)
    last = sum((length - 1) * stride for length, stride in axes)
    return block.address + (last + 1) * item_bytes(block.dtype)


def part_of(block: Operand, start: int, nbytes: int) -> Operand:
    """The packed bytes [start, start + nbytes) of a block without gaps, as a block.

    They keep the element type where no element is cut. The whole of a block may have gaps.
    """
    if nbytes == nbytes_of(block):
        return block
    item = _ITEM_BYTES[block.dtype]
    assert is_packed(block), f"a part of a block with gaps: {block}"
    # Cut inside an element: only bytes are left.
    if start % item or nbytes % item:
        return bytes_at(block.address + start, nbytes)
    return Operand(block.address + start, (nbytes // item,), block.dtype)


@cache
def _layout(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> Layout:
    nbytes = prod(shape) * item
    if not strides or not nbytes:
        return Layout(nbytes, None)
    axes = descriptor_axes(shape, strides)
    if len(axes) == 1:
        return Layout(nbytes, None)
    # The pitches of a descriptor are not negative.
    if len(axes) > MOST_AXES or min(stride for _, stride in axes) < 0:
        raise ValueError(
            f"a block of shape {shape} with strides {strides} is not planes of rows at two "
            "pitches, as a DMA moves them"
        )
    (rows, pitch), (columns, _) = axes[-2:]
    if len(axes) < MOST_AXES:
        return Layout(nbytes, StridedBlock(columns * item, pitch * item))
    plane_pitch = axes[0][1] * item
    return Layout(nbytes, StridedBlock(columns * item, pitch * item, rows, plane_pitch))
