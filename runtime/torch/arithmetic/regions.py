"""Divides an elementwise operation over the PEs that hold its result.

A PE computes the elements that it holds. A region is a block of them, with a start and strides in
each tensor; a stride of 0 repeats elements along an axis, which is broadcasting. Neighbouring axes
that are contiguous in all tensors become one, so that most regions have one axis or two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from runtime.device.memory.stored_tensor import StoredTensor
from runtime.device.rank.tensor_memory import Shard
from runtime.language.value import row_major
from runtime.model.placement import Span

Axis = tuple[int, tuple[int, ...]]
"""A length, and the stride of each tensor in elements."""


@dataclass(frozen=True)
class Region:
    """A block of the result: the start of each tensor in elements, and the axes. The first tensor
    is the result.
    """

    starts: tuple[int, ...]
    axes: tuple[Axis, ...]


@dataclass(frozen=True)
class RegionBlock:
    """A matrix of a region: rows and columns, and the start and both strides of each tensor."""

    rows: int
    columns: int
    starts: tuple[int, ...]
    strides: tuple[tuple[int, int], ...]


def regions(
    function: str, out: StoredTensor, operands: Sequence[StoredTensor]
) -> dict[tuple[int, int], tuple[Region, ...]]:
    """The regions of each PE, by (cube, pe), that holds elements of `out`; operands broadcast to
    its shape.

    `RuntimeError` for an operand that is not flat and not placed as the result is.
    """
    found: dict[tuple[int, int], list[Region]] = {}
    alike = [each for each in operands if not _is_single(each)]
    if not out.is_flat and all(same_placement(out, each) for each in alike):
        # Element by element in the order of memory, which all tensors have in common.
        parts = [(shard, Region(*_in_memory(shard, out, operands))) for shard in out.shards]
    elif out.is_flat:
        parts = list(_of_flat(function, out, operands))
    else:
        parts = [(shard, _of_spans(function, shard, out, operands)) for shard in out.shards]
    for shard, region in parts:
        if shard.spec.nbytes:
            found.setdefault((shard.spec.cube, shard.spec.pe), []).append(region)
    return {pe: tuple(each) for pe, each in sorted(found.items())}


def blocks(region: Region, most: int) -> Iterator[RegionBlock]:
    """The region as matrices of at most `most` elements, in row-major order."""
    axes = list(region.axes)
    # A tensor with gaps between single elements is a column of a matrix with a row pitch.
    if not axes or any(stride > 1 for stride in axes[-1][1]):
        axes.append((1, (1,) * len(region.starts)))
    if len(axes) == 1:
        axes.insert(0, (1, (0,) * len(region.starts)))
    (rows, down), (columns, across) = axes[-2:]
    strides = tuple(zip(down, across, strict=True))
    width = min(columns, most)
    height = max(1, min(rows, most // width))
    for outer in _offsets(axes[:-2], region.starts):
        for row in range(0, rows, height):
            for column in range(0, columns, width):
                yield RegionBlock(
                    min(height, rows - row),
                    min(width, columns - column),
                    tuple(
                        start + row * by_row + column * by_column
                        for start, (by_row, by_column) in zip(outer, strides, strict=True)
                    ),
                    strides,
                )


def same_placement(a: StoredTensor, b: StoredTensor) -> bool:
    """Whether two tensors have the same elements on the same PEs in the same order."""
    if (a.shape, a.layout) != (b.shape, b.layout):
        return False
    return _parts(a) == _parts(b)


def _parts(tensor: StoredTensor) -> list[tuple[object, ...]]:
    size = tensor.itemsize
    return [
        (spec.cube, spec.pe, spec.offset_bytes // size, spec.nbytes // size, spec.spans)
        for spec in (shard.spec for shard in tensor.shards)
    ]


def _is_single(tensor: StoredTensor) -> bool:
    return tensor.numel() == 1


def _in_memory(
    shard: Shard, out: StoredTensor, operands: Sequence[StoredTensor]
) -> tuple[tuple[int, ...], tuple[Axis, ...]]:
    start, count = (each // out.itemsize for each in (shard.spec.offset_bytes, shard.spec.nbytes))
    moves = [1, *(0 if _is_single(each) else 1 for each in operands)]
    return tuple(start * move for move in moves), ((count, tuple(moves)),)


def _of_flat(
    function: str, out: StoredTensor, operands: Sequence[StoredTensor]
) -> Iterator[tuple[Shard, Region]]:
    """The regions of a result whose shards are ranges of its row-major elements."""
    for each in operands:
        _check_flat(function, each)
    strides = [_broadcast_strides(each.shape, out.shape) for each in (out, *operands)]
    axes = merged_axes(_axes(out.shape, strides))
    for shard in out.shards:
        start = shard.spec.offset_bytes // out.itemsize
        stop = start + shard.spec.nbytes // out.itemsize
        if start < stop:
            for region in box_regions(start, stop, axes, len(strides)):
                yield shard, region


def _of_spans(
    function: str, shard: Shard, out: StoredTensor, operands: Sequence[StoredTensor]
) -> Region:
    """The region of a shard that is a rectangular block of the result."""
    if out.layout is not None:
        raise RuntimeError(
            f"{function}: the result is stored in tiles ({out.layout}); each operand must be "
            "stored so too, or have one element"
        )
    spans = shard.spec.spans
    lengths = tuple(stop - start for start, stop in spans)
    starts, strides = list[int](), list[tuple[int, ...]]()
    for each in (out, *operands):
        if same_placement(out, each):
            starts.append(shard.spec.offset_bytes // out.itemsize)
            strides.append(row_major(lengths))
        else:
            _check_flat(function, each)
            moves = _broadcast_strides(each.shape, out.shape)
            starts.append(sum(start * by for (start, _), by in zip(spans, moves, strict=True)))
            strides.append(moves)
    return Region(tuple(starts), tuple(merged_axes(_axes(lengths, strides))))


def _check_flat(function: str, tensor: StoredTensor) -> None:
    if not (tensor.is_flat or _is_single(tensor)):
        raise RuntimeError(
            f"{function}: {tensor.name} is split by {tensor.policy}, so its memory is not in "
            "row-major order; place all operands of its shape alike, or split it by rows"
        )


def _broadcast_strides(shape: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a row-major block along the axes of `whole`; 0 where it is repeated."""
    own = [
        stride if length != 1 else 0 for length, stride in zip(shape, row_major(shape), strict=True)
    ]
    return (*[0] * (len(whole) - len(shape)), *own)


def _axes(lengths: Sequence[int], strides: Sequence[tuple[int, ...]]) -> list[Axis]:
    return [(length, tuple(each[axis] for each in strides)) for axis, length in enumerate(lengths)]


def box_regions(start: int, stop: int, axes: Sequence[Axis], tensors: int) -> Iterator[Region]:
    """The regions with the elements [start, stop) in row-major order of `axes`."""
    for box in _boxes(start, stop, [length for length, _ in axes]):
        yield _cut(box, axes, [0] * tensors)


def merged_axes(axes: Sequence[Axis]) -> list[Axis]:
    """The axes without those of length 1; neighbours that are contiguous in all tensors are one."""
    merged: list[Axis] = []
    for length, strides in axes:
        if length == 1:
            continue
        if merged and all(
            outer == length * inner for outer, inner in zip(merged[-1][1], strides, strict=True)
        ):
            merged[-1] = (merged[-1][0] * length, strides)
        else:
            merged.append((length, strides))
    return merged


def _boxes(start: int, stop: int, lengths: Sequence[int]) -> Iterator[tuple[Span, ...]]:
    """The rectangular blocks of the row-major elements [start, stop): at most two at each axis."""
    if len(lengths) <= 1:
        yield ((start, stop),) * len(lengths)
        return
    inner, rest = prod(lengths[1:]), lengths[1:]
    whole = tuple((0, length) for length in rest)
    while start < stop:
        index = start // inner
        end = min(stop, (index + 1) * inner)
        if start % inner or end % inner:
            for box in _boxes(start - index * inner, end - index * inner, rest):
                yield ((index, index + 1), *box)
        else:
            end = stop // inner * inner
            yield ((index, end // inner), *whole)
        start = end


def _cut(box: tuple[Span, ...], axes: Sequence[Axis], starts: Sequence[int]) -> Region:
    """The part of axes that a box selects."""
    moved = [
        start + sum(low * strides[each] for (low, _), (_, strides) in zip(box, axes, strict=True))
        for each, start in enumerate(starts)
    ]
    lengths = [stop - low for low, stop in box]
    cut = [(length, strides) for length, (_, strides) in zip(lengths, axes, strict=True)]
    return Region(tuple(moved), tuple(merged_axes(cut)))


def _offsets(axes: Sequence[Axis], starts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    if not axes:
        yield starts
        return
    (length, strides), *rest = axes
    for index in range(length):
        moved = tuple(start + index * by for start, by in zip(starts, strides, strict=True))
        yield from _offsets(rest, moved)
