"""Blocks of elements as bytes: one contiguous range, or rows of bytes at one pitch.

A DMA descriptor has a start, a row length and a pitch. An operand has a shape and strides, in
elements. This module merges the axes of an operand until a descriptor can hold it.
"""

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import NamedTuple

from runtime.core import dtypes
from runtime.core.trace import Operand

BYTES = "u8"
"""The element type of a copy of bytes."""

_ITEM_BYTES = {BYTES: 1} | {dtype.name: dtype.itemsize for dtype in dtypes.ALL}


class StridedBlock(NamedTuple):
    """Rows of `row_bytes` that start `pitch` bytes apart; packed, they have no gaps."""

    row_bytes: int
    pitch: int

    def runs(self, start: int, nbytes: int) -> Iterator[tuple[int, int, int]]:
        """(offset, rows, bytes of each row) of the packed bytes [start, start + nbytes).

        Whole rows come as one run; a row that is cut at an end is a run by itself.
        """
        row, skip = divmod(start, self.row_bytes)
        if skip:
            first = min(self.row_bytes - skip, nbytes)
            yield row * self.pitch + skip, 1, first
            row, nbytes = row + 1, nbytes - first
        whole, last = divmod(nbytes, self.row_bytes)
        if whole:
            yield row * self.pitch, whole, self.row_bytes
        if last:
            yield (row + whole) * self.pitch, 1, last


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
    """The bytes and rows of a block; `ValueError` for one that is not rows at one pitch."""
    return _layout(block.shape, block.strides, _ITEM_BYTES[block.dtype])


def is_packed(block: Operand) -> bool:
    """Whether the elements of a block follow each other in memory without gaps."""
    return not block.strides or _merged(block.shape, block.strides) in (
        [],
        [(prod(block.shape), 1)],
    )


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
    axes = _merged(shape, strides)
    # No axis is contiguous: each element is a row.
    if not axes or axes[-1][1] != 1:
        axes.append((1, 1))
    if len(axes) == 1:
        return Layout(nbytes, None)
    # A descriptor has one pitch, and it is not negative.
    if len(axes) > 2 or axes[0][1] < 0:
        raise ValueError(
            f"a block of shape {shape} with strides {strides} is not rows at one pitch, "
            "as a DMA moves them"
        )
    (_, pitch), (columns, _) = axes
    return Layout(nbytes, StridedBlock(columns * item, pitch * item))


def _merged(shape: tuple[int, ...], strides: tuple[int, ...]) -> list[tuple[int, int]]:
    """(length, stride) of the axes of a block, those merged that are one axis in memory."""
    axes: list[tuple[int, int]] = []
    for length, stride in zip(shape, strides, strict=True):
        # Its stride is never used.
        if length == 1:
            continue
        # The outer axis steps exactly over the inner one: together they are one axis.
        if axes and axes[-1][1] == length * stride:
            axes[-1] = (axes[-1][0] * length, stride)
        else:
            axes.append((length, stride))
    return axes
