"""Launches that resample the last axes of a tensor, one after the other."""

from collections.abc import Sequence
from functools import cached_property
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from kernbench.torch_backend.launching.launches import (
    launched,
    most_elements,
    pointer_of,
    window_of,
)
from kernbench.torch_backend.runtime.element_types import computed_in, hardware_type, moved_as
from runtime.ccl.exchange import chunk_bounds
from runtime.core.requests import PerPe
from runtime.device.kernels import resampling as kernels
from runtime.device.kernels.resampling import ResampledAxis, ResampledPiece
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.movers.movers import spread
from runtime.device.regions.regions import Pe


class MapEntry(NamedTuple):
    """A row of the result, a row of the source, and the weight with which this is added."""

    target: int
    source: int
    weight: float = 1.0


class AxisMap:
    """Map of an axis of `length` elements to one of `count`: the entries of a sparse matrix, in the
    order in which they are added.
    """

    def __init__(self, length: int, count: int, entries: Sequence[MapEntry]) -> None:
        self.length, self.count, self.entries = length, count, entries

    def transposed(self) -> "AxisMap":
        """The map of gradients."""
        turned = [MapEntry(each.source, each.target, each.weight) for each in self.entries]
        return AxisMap(self.count, self.length, sorted(turned))

    @cached_property
    def is_move(self) -> bool:
        """Whether each element is one of the source."""
        targets = [each.target for each in self.entries]
        return targets == list(range(self.count)) and all(each.weight == 1 for each in self.entries)

    @cached_property
    def lists(self) -> tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]]:
        """The rows and the weights of each summand; a missing one has the weight 0."""
        by_target: list[list[tuple[int, float]]] = [[] for _ in range(self.count)]
        for target, source, weight in self.entries:
            by_target[target].append((source, weight))
        depth = max(1, max(map(len, by_target), default=1))
        padded = [each + [(0, 0.0)] * (depth - len(each)) for each in by_target]
        rows = tuple(tuple(each[number][0] for each in padded) for number in range(depth))
        weights = tuple(tuple(each[number][1] for each in padded) for number in range(depth))
        return rows, weights


def resampled(name: str, x: Tensor, maps: Sequence[AxisMap]) -> Tensor | None:
    """The last axes of `x`, each by its map, as a contiguous tensor; None if rows do not fit the
    scratch. Sums of 16-bit numbers are of float32, for the caller to round.
    """
    outer, lengths = x.shape[: -len(maps)], [each.count for each in maps]
    if not x.numel() or not prod(lengths):
        return x.new_zeros((*outer, *lengths))
    planes = prod(outer)
    if not all(each.is_move for each in maps):
        x = x.to(computed_in(x.dtype))
    if len(maps) == 1:
        # The other axes are the columns of the rows.
        turned = x.reshape(planes, maps[0].length).t().contiguous()
        matrix = _along(name, turned.view(1, maps[0].length, planes), maps[0])
        return None if matrix is None else matrix.view(*outer, *lengths)
    current = x.contiguous().view(planes, -1)
    for each in maps:
        moved = _along(name, current.view(planes, each.length, -1), each)
        if moved is None:
            return None
        current = moved
    return current.view(*outer, *lengths)


def _along(name: str, x: Tensor, axis: AxisMap) -> Tensor | None:
    """The second axis of three by its map, as the last one of the result."""
    planes, _, width = x.shape
    rows, weights = axis.lists
    shape = ResampledAxis(axis.length, width, rows)
    is_move = axis.is_move
    row_bytes = (2 if is_move else 8) * width * x.itemsize + 128
    high = most_elements(1) // row_bytes
    if not high:
        return None
    out = torch.empty((planes, width, axis.count), dtype=x.dtype, device=x.device)
    pieces = _dealt(out, (planes, axis.count), high)
    # Planes count from the first one of a PE, so that PEs with equal work are seen to have it.
    firsts = {pe: own[0].plane for pe, own in pieces.items()}
    moved = {
        pe: tuple([each._replace(plane=each.plane - firsts[pe]) for each in own])
        for pe, own in pieces.items()
    }

    def pointers(window: StridedWindow, pitch: int) -> PerPe:
        start = pointer_of(window)
        return PerPe({pe: start + first * pitch for pe, first in firsts.items()})

    source, target = (
        window_of(each, moved_as(each.dtype) if is_move else None) for each in (x, out)
    )
    ends = pointers(source, axis.length * width), pointers(target, axis.count * width)
    if is_move:
        arguments = (PerPe(moved), shape, *ends)
        launched(name, kernels.moved_rows, arguments, [source, target], list(pieces))
        return out
    factors = window_of(torch.tensor(weights, dtype=x.dtype).to(x.device))
    arguments = (PerPe(moved), shape, hardware_type(x.dtype), ends[0], pointer_of(factors), ends[1])
    used = [source, factors, target]
    launched(name, kernels.weighted_rows, arguments, used, list(pieces))
    return out


def _dealt(out: Tensor, shape: tuple[int, int], most: int) -> dict[Pe, tuple[ResampledPiece, ...]]:
    """Equal numbers of planes for each PE, or of strips of planes where they are few; at most
    `most` rows at once.
    """
    planes, rows = shape
    movers = spread(out.numel(), out.itemsize)
    strips = max(-(-rows // most), min(rows, len(movers) // planes), 1)
    spans = list(chunk_bounds(rows, strips))
    at_once = max(1, most // rows) if strips == 1 else 1
    units = chunk_bounds(planes * strips, min(len(movers), planes * strips))
    pieces: dict[Pe, tuple[ResampledPiece, ...]] = {}
    for spec, (first, last) in zip(movers, units, strict=False):
        own = list[ResampledPiece]()
        for start in range(first, last, at_once):
            plane, strip = divmod(start, strips)
            count = min(at_once, last - start) if strips == 1 else 1
            own.append(ResampledPiece(plane, count, spans[strip]))
        pieces[spec.cube, spec.pe] = tuple(own)
    return pieces
