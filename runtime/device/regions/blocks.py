"""Divides regions into matrices that a DMA descriptor loads and the scratch of a PE holds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt, prod
from typing import NamedTuple

from runtime.device.regions.regions import Axis, Region


@dataclass(frozen=True)
class MatrixBlock:
    """A matrix of a region: its shape, and the start and both strides of each tensor."""

    shape: tuple[int, int]
    starts: tuple[int, ...]
    strides: tuple[tuple[int, int], ...]


class BlockLimits(NamedTuple):
    """The most elements of a block, and the longest side along which an operand is broadcast: the
    vector engine keeps a row or a column in its registers.

    Blocks that `is_in_turn` are computed one after the other: a block is loaded when the result of
    its predecessor is stored.
    """

    elements: int
    broadcast: int
    is_in_turn: bool = False

    @classmethod
    def in_turn(cls, most: int) -> "BlockLimits":
        """The limits of blocks of at most `most` elements, one after the other."""
        return cls(most, most, is_in_turn=True)


def blocks(region: Region, limits: BlockLimits) -> Iterator[MatrixBlock]:
    """The region as matrices within the limits, each of which a DMA descriptor can load: along one
    of their axes the elements of a tensor are neighbours, or one element, and no two elements of a
    matrix are one element of memory, as they are in windows of an unfolded tensor.
    """
    axes = list(region.axes)
    tensors = len(region.starts)
    if len(axes) < 2:
        axes[:0] = [(1, (0,) * tensors)] * (2 - len(axes))
    (_, down), (_, across) = axes[-2:]
    has_gaps = any(
        by_column > 1 and (by_row > 1 or limits.is_in_turn)
        for by_row, by_column in zip(down, across, strict=True)
    )
    if has_gaps:
        # A tensor with gaps between single elements is a column of a matrix with a row pitch.
        axes.append((1, (1,) * tensors))
        (_, down), (_, across) = axes[-2:]
    (rows, _), (columns, _) = axes[-2:]
    strides = tuple(zip(down, across, strict=True))
    # Of a transposed matrix, a tall and narrow block has bursts of a few bytes.
    turned = any(by_column > 1 for _, by_column in strides)
    most = limits.elements
    width = min(columns, isqrt(most) if turned else most)
    if rows > 1 and any(by_column and not by_row for by_row, by_column in strides):
        width = min(width, limits.broadcast)
    height = max(1, min(rows, most // width))
    if columns > 1 and any(by_row and not by_column for by_row, by_column in strides):
        height = min(height, limits.broadcast)
    height, width = _apart((height, width), strides)
    for outer in _offsets(axes[:-2], region.starts):
        for row in range(0, rows, height):
            for column in range(0, columns, width):
                yield MatrixBlock(
                    (min(height, rows - row), min(width, columns - column)),
                    tuple(
                        start + row * by_row + column * by_column
                        for start, (by_row, by_column) in zip(outer, strides, strict=True)
                    ),
                    strides,
                )


def _apart(shape: tuple[int, int], strides: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The greatest part of a matrix in which no tensor has an element twice."""
    height, width = shape
    for by_row, by_column in strides:
        # Along an axis where it is repeated, a tensor is loaded once.
        if height == 1 or width == 1 or not by_row or not by_column:
            continue
        # The longest run along the axis of the shorter stride that ends before the next one begins.
        if by_row <= by_column:
            run = -(-by_column // by_row)
            parts = [(min(height, run), width), (height, 1 if height > run else width)]
        else:
            run = -(-by_row // by_column)
            parts = [(height, min(width, run)), (1 if width > run else height, width)]
        height, width = max(parts, key=prod)
    return height, width


def _offsets(axes: Sequence[Axis], starts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not axes:
        yield starts
        return
    (length, strides), *rest = axes
    for index in range(length):
        moved = tuple(start + index * by for start, by in zip(starts, strides, strict=True))
        yield from _offsets(rest, moved)
