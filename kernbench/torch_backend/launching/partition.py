"""Deals the elements of an operator's result to PEs, for tensors with any strides.

A PE computes the elements of the result that its HBM slice holds; the other operands are read at
their virtual addresses. A result with gaps in memory, such as a slice of columns, is dealt in equal
numbers of elements instead, over as many PEs as a storage of its bytes would have.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isqrt, log, prod, sqrt
from typing import NamedTuple

from kernbench.torch_backend.runtime.storages import StridedWindow
from runtime.ccl.exchange import chunk_bounds
from runtime.device.movers.movers import spread
from runtime.language.value import row_major
from runtime.torch.arithmetic.regions import Axis, Region, box_regions, merged_axes

Pe = tuple[int, int]
_GAP_ELEMENTS = 512
"""More than the alignment of the values of a block takes, in elements."""


@dataclass(frozen=True)
class MatrixBlock:
    """A matrix of a region: its shape, and the start and both strides of each tensor."""

    shape: tuple[int, int]
    starts: tuple[int, ...]
    strides: tuple[tuple[int, int], ...]


def partition(
    out: StridedWindow, operands: Sequence[StridedWindow]
) -> dict[Pe, tuple[Region, ...]]:
    """The regions of each PE, by (cube, PE); the operands are broadcast to the shape of `out`."""
    axes = _axes_in_memory(out, operands)
    tensors = 1 + len(operands)
    lengths = [length for length, _ in axes]
    if _is_turned(axes):
        return _tiles(out, axes)
    dense = tuple(strides[0] for _, strides in axes) == row_major(tuple(lengths))
    found: dict[Pe, list[Region]] = {}
    for pe, start, stop in _spans(out, dense=dense):
        if start < stop:
            found.setdefault(pe, []).extend(box_regions(start, stop, axes, tensors))
    return {pe: tuple(each) for pe, each in sorted(found.items())}


class BlockLimits(NamedTuple):
    """The most elements that the scratch holds at once, the most elements of a block, and the
    longest side along which an operand is broadcast: the vector engine keeps a row or a column in
    its registers.
    """

    scratch: int
    elements: int
    broadcast: int


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
    if any(by_row > 1 and by_column > 1 for by_row, by_column in zip(down, across, strict=True)):
        axes.append((1, (1,) * tensors))
        (_, down), (_, across) = axes[-2:]
    (rows, _), (columns, _) = axes[-2:]
    strides = tuple(zip(down, across, strict=True))
    # Of a transposed matrix, a tall and narrow block has bursts of a few bytes.
    turned = any(by_column > 1 for _, by_column in strides)
    most = limits.elements
    width = min(columns, isqrt(most) if turned else most)
    if any(by_column and not by_row for by_row, by_column in strides):
        width = min(width, limits.broadcast)
    height = max(1, min(rows, most // width))
    if any(by_row and not by_column for by_row, by_column in strides):
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


def rounds(parts: Sequence[Region], limits: BlockLimits) -> Iterator[list[MatrixBlock]]:
    """The blocks of regions, in lists that fit the scratch together."""
    found, elements = list[MatrixBlock](), 0
    for region in parts:
        for block in blocks(region, limits):
            size = prod(block.shape) + _GAP_ELEMENTS
            elements += size
            if found and elements > limits.scratch:
                yield found
                found, elements = [], size
            found.append(block)
    if found:
        yield found


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


def _is_turned(axes: Sequence[Axis]) -> bool:
    """Whether an operand has a matrix in the other order than the result."""
    if len(axes) != 2:
        return False
    (_, (_, *down)), (_, (_, *across)) = axes
    return any(
        by_row == 1 and by_column > 1 for by_row, by_column in zip(down, across, strict=True)
    )


def _tiles(out: StridedWindow, axes: Sequence[Axis]) -> dict[Pe, tuple[Region, ...]]:
    """Tiles of a matrix of which the sides are nearly equal: of a few rows of the result, a PE
    would load columns of a few elements.
    """
    (rows, down), (columns, across) = axes
    movers = spread(rows * columns, out.window.itemsize)
    wanted = sqrt(len(movers) * rows / columns)
    high = min(
        (each for each in range(1, len(movers) + 1) if len(movers) % each == 0),
        key=lambda each: (abs(log(each / wanted)), each),
    )
    spans = [
        (row, column)
        for row in chunk_bounds(rows, high)
        for column in chunk_bounds(columns, len(movers) // high)
    ]
    return {
        (spec.cube, spec.pe): (
            Region(
                tuple(row[0] * a + column[0] * b for a, b in zip(down, across, strict=True)),
                ((row[1] - row[0], down), (column[1] - column[0], across)),
            ),
        )
        for spec, (row, column) in zip(movers, spans, strict=True)
        if row[0] < row[1] and column[0] < column[1]
    }


def _axes_in_memory(out: StridedWindow, operands: Sequence[StridedWindow]) -> list[Axis]:
    """The axes in the order in which `out` has them in memory, with the strides of all tensors."""
    strides = [_broadcast(each, out.shape) for each in (out, *operands)]
    axes = [
        (length, tuple(each[axis] for each in strides)) for axis, length in enumerate(out.shape)
    ]
    return merged_axes(sorted(axes, key=lambda axis: -axis[1][0]))


def _broadcast(tensor: StridedWindow, shape: tuple[int, ...]) -> tuple[int, ...]:
    own = [
        0 if length == 1 else stride
        for length, stride in zip(tensor.shape, tensor.strides, strict=True)
    ]
    return (*[0] * (len(shape) - len(own)), *own)


def _spans(out: StridedWindow, *, dense: bool) -> Iterator[tuple[Pe, int, int]]:
    """The range of elements of each PE, in the order of memory."""
    size = out.window.itemsize
    if dense:
        for shard in out.window.shards:
            start = shard.spec.offset_bytes // size
            yield (shard.spec.cube, shard.spec.pe), start, start + shard.spec.nbytes // size
        return
    numel = prod(out.shape)
    movers = spread(numel, size)
    for spec, (start, stop) in zip(movers, chunk_bounds(numel, len(movers)), strict=True):
        yield (spec.cube, spec.pe), start, stop


def _offsets(axes: Sequence[Axis], starts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not axes:
        yield starts
        return
    (length, strides), *rest = axes
    for index in range(length):
        moved = tuple(start + index * by for start, by in zip(starts, strides, strict=True))
        yield from _offsets(rest, moved)
