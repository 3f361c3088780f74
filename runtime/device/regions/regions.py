"""Regions: blocks of elements with a start and strides in each tensor of an operation.

A stride of 0 repeats elements along an axis, which is broadcasting. Neighbouring axes that are
contiguous in all tensors become one, so that most regions have one axis or two.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from runtime.model.placement import Span

Pe = tuple[int, int]
"""Cube and PE."""
Axis = tuple[int, tuple[int, ...]]
"""A length, and the stride of each tensor in elements."""


@dataclass(frozen=True)
class Region:
    """A block of the result: the start of each tensor in elements, and the axes. The first tensor
    is the result.
    """

    starts: tuple[int, ...]
    axes: tuple[Axis, ...]


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


def from_own_start(
    regions: Sequence[Region],
) -> tuple[tuple[Region, ...], tuple[int, ...]]:
    """The regions of a PE with starts that count from those of its first region, and these: what
    differs between PEs with equal work is then in the starts alone.
    """
    first = regions[0].starts
    moved = tuple(
        Region(
            tuple([start - own for start, own in zip(each.starts, first, strict=True)]), each.axes
        )
        for each in regions
    )
    return moved, first
