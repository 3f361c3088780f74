"""The kernels that move elements: fills, copies with conversion, transposition.

Every PE works on the parts that it gets as an argument, in pieces that fit its scratch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import NamedTuple

from runtime.core.dtypes import DType
from runtime.device.kernels.block_access import descriptor
from runtime.device.kernels.conversions import in_type
from runtime.device.kernels.pointwise import PointwiseJob, stream
from runtime.device.regions.blocks import BlockLimits, blocks
from runtime.device.regions.regions import Region
from runtime.language import tl
from runtime.language.value import Pointer, Value

_LOW_BITS = 32


def fill(parts: tuple[tuple[Pointer, int], ...], value: float, piece: int) -> None:
    """Kernel: store `value` to all elements of every part (target, elements)."""
    longest = max(numel for _, numel in parts)
    with tl.scratch():
        # One block in TCM is stored as often as the parts need it, by several requests at a time.
        block = _constant(min(piece, longest), value, parts[0][0].dtype)
        for target, numel in parts:
            for start in range(0, numel, piece):
                tl.store_async(target + start, block[: min(piece, numel - start)])


def _constant(numel: int, value: float, dtype: DType) -> Value:
    """A block with one value; of an integer beyond 2^53, which the engine does not take as a
    number, from its upper and its lower half.
    """
    if isinstance(value, float) or value == float(value):
        return tl.full(numel, value, dtype)
    upper, lower = divmod(int(value), 1 << _LOW_BITS)
    return tl.full(numel, upper, dtype) * (1 << _LOW_BITS) + lower


def copy(parts: tuple[tuple[Pointer, Pointer, int], ...], piece: int) -> None:
    """Kernel: copy every part (source, target, elements), converted to the type of the target."""
    for source, target, numel in parts:
        for start in range(0, numel, piece):
            with tl.scratch():
                block = tl.load(source + start, min(piece, numel - start))
                same = block.dtype == target.dtype
                tl.store(target + start, block if same else block.to(target.dtype))


def transpose(
    source: Pointer, target: Pointer, shape: tuple[int, int], part: tuple[int, int], tile: int
) -> None:
    """Kernel: the rows [first, last) of the transposed matrix, which are columns of `source` of
    `shape`, in blocks of `tile` x `tile`.
    """
    (rows, columns), (first, last) = shape, part
    for column in range(first, last, tile):
        wide = min(tile, last - column)
        for row in range(0, rows, tile):
            with tl.scratch():
                high = min(tile, rows - row)
                block = tl.load(source + row * columns + column, (high, wide), (columns, 1))
                tl.store(target + column * rows + row, tl.trans(block), (rows, 1))


def copy_columns(
    source: Pointer,
    target: Pointer,
    columns: int,
    pitch: int,
    part: tuple[int, int],
    piece: int,
) -> None:
    """Kernel: copy the rows [first, last) of a matrix of `columns` into one with `pitch` columns,
    from the column that `target` points to, in blocks of `piece` elements.
    """
    first, last = part
    # Rows that are longer than a block are copied one after the other.
    high = 1 if columns > piece else max(1, last - first)
    copies = [
        BlockCopy(
            rows=min(high, last - row),
            columns=columns,
            source=source + row * columns,
            source_pitch=columns,
            target=target + row * pitch,
            target_pitch=pitch,
        )
        for row in range(first, last, high)
    ]
    copy_blocks(copies, piece)


@dataclass(frozen=True)
class BlockCopy:
    """`rows` x `columns` elements from one matrix to another; a pitch is the distance of rows in
    elements.
    """

    rows: int
    columns: int
    source: Pointer
    source_pitch: int
    target: Pointer
    target_pitch: int


def copy_blocks(copies: Sequence[BlockCopy], at_most: int) -> None:
    """Kernel: make copies, with at most `at_most` elements in TCM at once."""
    for copy in copies:
        for left in range(0, copy.columns, at_most):
            columns = min(at_most, copy.columns - left)
            step = max(at_most // columns, 1)
            for top in range(0, copy.rows, step):
                shape = (min(step, copy.rows - top), columns)
                source = copy.source + top * copy.source_pitch + left
                target = copy.target + top * copy.target_pitch + left
                with tl.scratch():
                    block = tl.load(source, shape, strides=(copy.source_pitch, 1))
                    tl.store(target, block, strides=(copy.target_pitch, 1))


class CopyJob(NamedTuple):
    """One of the copies of a launch on a PE."""

    parts: Sequence[Region]
    limits: BlockLimits
    out: Pointer
    source: Pointer


def copied(parts: Sequence[Region], limits: BlockLimits, out: Pointer, source: Pointer) -> None:
    """Kernel: copy elements, converted to the type of `out`, to the regions of this PE."""
    copied_each([CopyJob(parts, limits, out, source)])


def copied_each(jobs: Sequence[CopyJob]) -> None:
    """Kernel: several copies, the blocks of which are one stream for each pair of types."""
    for (kind, source), alike in groupby(jobs, lambda each: (each.out.dtype, each.source.dtype)):
        given = [PointwiseJob(each.parts, each.limits, each.out, (each.source,)) for each in alike]
        stream(None if kind == source else partial(in_type, dtype=kind), given)


def filled(parts: Sequence[Region], limits: BlockLimits, out: Pointer, value: float) -> None:
    """Kernel: store a number to all elements of the regions of this PE."""
    for part in parts:
        for block in blocks(part, limits):
            with tl.scratch():
                result = tl.full(block.shape, value, out.dtype)
                tl.store(out + block.starts[0], result, descriptor(block, 0, block.shape))
