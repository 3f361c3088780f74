"""Deals the elements of an operator's result to PEs.

A PE computes the elements of the result that its HBM slice holds; the other operands are read at
their virtual addresses. A result with gaps in memory, such as a slice of columns, is dealt in equal
numbers of elements instead, over as many PEs as a storage of its bytes would have.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import log, prod, sqrt

from runtime.ccl.exchange import chunk_bounds
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.movers.movers import spread
from runtime.device.rank.tensor_memory import Shard
from runtime.device.regions.regions import (
    Axis,
    Pe,
    Region,
    box_regions,
    from_own_start,
    merged_axes,
)
from runtime.language.value import row_major

OwnPart = tuple[tuple[Region, ...], tuple[int, ...]]
"""The regions of a PE, and the elements of each tensor from which their starts count."""


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
    regions: dict[Pe, list[Region]] = {}
    for pe, start, stop in _spans(out, dense=dense):
        if start < stop:
            regions.setdefault(pe, []).extend(box_regions(start, stop, axes, tensors))
    return {pe: tuple(each) for pe, each in sorted(regions.items())}


def own_parts(out: StridedWindow, operands: Sequence[StridedWindow]) -> Mapping[Pe, OwnPart]:
    """`partition` with the regions of each PE from its own start.

    PEs with equal work have one tuple of regions, so that they are seen to have it. Tensors that
    differ in their addresses alone have one partition, which is computed once.
    """
    memory = out.window
    layout = memory.storage.layout
    key = (
        "own parts",
        memory.address - memory.storage.address,
        memory.nbytes,
        memory.itemsize,
        tuple([(each.shape, each.strides) for each in (out, *operands)]),
    )
    assert memory.is_flat, "the shards of a flat window follow from its offset and its size"
    return layout.derived(key, lambda: _own_parts(partition(out, operands)))


def _own_parts(partition: Mapping[Pe, tuple[Region, ...]]) -> Mapping[Pe, OwnPart]:
    known: dict[tuple[Region, ...], tuple[Region, ...]] = {}
    parts: dict[Pe, OwnPart] = {}
    for pe, regions in partition.items():
        moved, starts = from_own_start(regions)
        parts[pe] = known.setdefault(moved, moved), starts
    return parts


def placed_partition(
    function: str, out: DeviceTensor, operands: Sequence[DeviceTensor]
) -> dict[tuple[int, int], tuple[Region, ...]]:
    """`partition` of tensors in any placement, which broadcast to the shape of `out`.

    `RuntimeError` for an operand that is not flat and not placed as the result is.
    """
    if out.is_flat:
        for each in operands:
            _check_flat(function, each)
        return partition(StridedWindow.of(out), [StridedWindow.of(each) for each in operands])
    regions: dict[Pe, list[Region]] = {}
    alike = all(same_placement(out, each) for each in operands if not _is_single(each))
    for shard in out.shards:
        if shard.spec.nbytes:
            region = (
                _in_memory(shard, out, operands)
                if alike
                else _of_spans(function, shard, out, operands)
            )
            regions.setdefault((shard.spec.cube, shard.spec.pe), []).append(region)
    return {pe: tuple(each) for pe, each in sorted(regions.items())}


def same_placement(a: DeviceTensor, b: DeviceTensor) -> bool:
    """Whether two tensors have the same elements on the same PEs in the same order."""
    if (a.shape, a.layout) != (b.shape, b.layout):
        return False
    return _parts(a) == _parts(b)


def _parts(tensor: DeviceTensor) -> list[tuple[object, ...]]:
    size = tensor.itemsize
    return [
        (spec.cube, spec.pe, spec.offset_bytes // size, spec.nbytes // size, spec.spans)
        for spec in (shard.spec for shard in tensor.shards)
    ]


def _is_single(tensor: DeviceTensor) -> bool:
    return tensor.numel() == 1


def _in_memory(shard: Shard, out: DeviceTensor, operands: Sequence[DeviceTensor]) -> Region:
    """Element by element in the order of memory, which all tensors have in common."""
    start, count = (each // out.itemsize for each in (shard.spec.offset_bytes, shard.spec.nbytes))
    moves = [1, *(0 if _is_single(each) else 1 for each in operands)]
    return Region(tuple(start * move for move in moves), ((count, tuple(moves)),))


def _of_spans(
    function: str, shard: Shard, out: DeviceTensor, operands: Sequence[DeviceTensor]
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
            moves = _broadcast(StridedWindow.of(each), out.shape)
            starts.append(sum(start * by for (start, _), by in zip(spans, moves, strict=True)))
            strides.append(moves)
    return Region(tuple(starts), tuple(merged_axes(_axes(lengths, strides))))


def _check_flat(function: str, tensor: DeviceTensor) -> None:
    if not (tensor.is_flat or _is_single(tensor)):
        raise RuntimeError(
            f"{function}: {tensor.name} is split by {tensor.policy}, so its memory is not in "
            "row-major order; place all operands of its shape alike, or split it by rows"
        )


def _axes(lengths: Sequence[int], strides: Sequence[tuple[int, ...]]) -> list[Axis]:
    return [(length, tuple(each[axis] for each in strides)) for axis, length in enumerate(lengths)]


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
    return merged_axes(sorted(_axes(out.shape, strides), key=lambda axis: -axis[1][0]))


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
