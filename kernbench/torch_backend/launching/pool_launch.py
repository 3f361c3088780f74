"""Launches of pools: equal numbers of planes for each PE, or strips where planes are few."""

from collections.abc import Callable, Sequence
from functools import cached_property

import torch

from kernbench.torch_backend.launching.launches import (
    launched,
    most_elements,
    pointer_of,
    window_of,
)
from runtime.ccl.exchange import chunk_bounds
from runtime.core.requests import PerPe
from runtime.device.kernels.pool_windows import PoolPiece, PoolShape, Span, WindowAxis
from runtime.device.movers.movers import spread
from runtime.device.regions.regions import Pe

_WIDEST = 2048
"""Windows of a row of which the registers of the vector engine hold the numbers."""
_BYTES_OF_WINDOW = 40
"""Scratch for what a window has: the result, its number in two types, a divided sum."""
Given = int | Sequence[int]


class PoolGeometry:
    """The axes of a pool over the last one, two or three axes of a tensor: an axis of planes, rows
    and columns, of which the first ones may have one element.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        counts: Sequence[int],
        sizes: Sequence[int],
        steps: Sequence[int],
        margins: Sequence[int],
        apart: Sequence[int],
        *,
        with_margins: bool = True,
    ) -> None:
        given = zip(lengths, counts, sizes, steps, margins, apart, strict=True)
        axes = [WindowAxis(*each) for each in given]
        single = WindowAxis(length=1, total=1, size=1, step=1, margin=0, apart=1)
        self.depth, *last = [single] * (3 - len(axes)) + axes
        self.shape = PoolShape(*last)
        self.with_margins = with_margins

    @cached_property
    def is_flat(self) -> bool:
        """Whether a plane of the result has one source, with its own number."""
        return (self.depth.length, self.depth.total, self.depth.size) == (1, 1, 1)

    @property
    def plane(self) -> int:
        """Elements of a plane."""
        return self.shape.rows.length * self.shape.columns.length

    def depth_of(self, window: int) -> int:
        """The elements of a window along the axis of planes, by which its mean is divided."""
        start, margin = window * self.depth.step - self.depth.margin, self.depth.margin
        end = min(start + self.depth.size, self.depth.length + margin * self.with_margins)
        return end - (start if self.with_margins else max(start, 0))

    def sources(self, plane: int) -> tuple[tuple[int, int], ...]:
        """The planes under a plane of windows, each with the number of its first element."""
        image, window = divmod(plane, self.depth.total)
        elements = (
            window * self.depth.step + self.depth.offset(place) for place in range(self.depth.size)
        )
        return tuple(
            (image * self.depth.length + each, each * self.plane)
            for each in elements
            if 0 <= each < self.depth.length
        )

    def windows_over(self, plane: int, *, counts_elements: bool) -> tuple[tuple[int, int], ...]:
        """The planes of windows over a plane, each with the number of the first element of the
        plane, or with the elements of a window along the axis of planes.
        """
        image, element = divmod(plane, self.depth.length)
        windows = list[int]()
        for place in range(self.depth.size):
            window, rest = divmod(element - self.depth.offset(place), self.depth.step)
            if not rest and 0 <= window < self.depth.total:
                windows.append(window)
        return tuple(
            (
                image * self.depth.total + each,
                self.depth_of(each) if counts_elements else element * self.plane,
            )
            for each in sorted(windows)
        )


def launch_pool(
    name: str,
    kernel: Callable[..., None],
    geometry: PoolGeometry,
    arguments: tuple[object, ...],
    tensors: Sequence[torch.Tensor],
    *,
    of_gradient: bool = False,
) -> bool:
    """Compute a pool, or its gradient, of contiguous tensors, the first one of which is read and
    all others but the index of a gradient are written; False if a row does not fit the scratch.
    """
    axes = geometry.shape
    if axes.columns.total > _WIDEST and (axes.rows.length, axes.rows.total) != (1, 1):
        return False
    out = tensors[-1] if of_gradient else tensors[1]
    pieces = _dealt(geometry, out, tensors[0].itemsize, arguments, of_gradient=of_gradient)
    if pieces is None:
        return False
    windows = [window_of(each) for each in tensors]
    firsts = {pe: own[0].plane if geometry.is_flat else 0 for pe, own in pieces.items()}
    of_windows = axes.rows.total * axes.columns.total
    pointers = list[PerPe]()
    for number, each in enumerate(windows):
        has_elements = number == (len(windows) - 1 if of_gradient else 0)
        pitch, start = geometry.plane if has_elements else of_windows, pointer_of(each)
        pointers.append(PerPe({pe: start + first * pitch for pe, first in firsts.items()}))
    moved = PerPe({pe: _from_plane(own, firsts[pe]) for pe, own in pieces.items()})
    launched(name, kernel, (moved, axes, *arguments, *pointers), windows, list(pieces))
    return True


def _from_plane(pieces: Sequence[PoolPiece], first: int) -> tuple[PoolPiece, ...]:
    """The pieces of a PE with planes that count from its own first one, so that PEs with equal work
    are seen to have it.
    """
    if not first:
        return tuple(pieces)
    return tuple(
        each._replace(
            plane=each.plane - first,
            sources=tuple((plane - first, number) for plane, number in each.sources),
        )
        for each in pieces
    )


def _dealt(
    geometry: PoolGeometry,
    out: torch.Tensor,
    itemsize: int,
    arguments: tuple[object, ...],
    *,
    of_gradient: bool,
) -> dict[Pe, tuple[PoolPiece, ...]] | None:
    rows, columns = geometry.shape
    height, width = (rows.length, columns.length) if of_gradient else (rows.total, columns.total)
    planes = out.numel() // (height * width)
    high, at_once = _limits(geometry, itemsize, of_gradient=of_gradient)
    if not high:
        return None
    movers = spread(out.numel(), out.itemsize)
    # Strips of fewer rows where there are fewer planes than PEs.
    strips = max(-(-height // high), min(height, len(movers) // planes), 1)
    spans = list(chunk_bounds(height, strips))
    units = chunk_bounds(planes * strips, min(len(movers), planes * strips))
    counts_elements = bool(arguments) and isinstance(arguments[-1], tuple)
    pieces: dict[Pe, tuple[PoolPiece, ...]] = {}
    for spec, (first, last) in zip(movers, units, strict=False):
        own = list[PoolPiece]()
        for start, end in _runs(first, last, strips, at_once if geometry.is_flat else 1):
            plane, strip = divmod(start, strips)
            if of_gradient:
                sources = geometry.windows_over(plane, counts_elements=counts_elements)
                depth = 1
            else:
                sources = geometry.sources(plane)
                depth = geometry.depth_of(plane % geometry.depth.total)
            count = max(1, (end - start) // strips)
            own.append(PoolPiece(plane, count, spans[strip], sources, depth))
        pieces[spec.cube, spec.pe] = tuple(own)
    return pieces


def _runs(first: int, last: int, strips: int, at_once: int) -> list[Span]:
    """Strips [first, last) one by one, or whole planes of one strip several at once."""
    by = at_once if strips == 1 else 1
    return [(each, min(each + by, last)) for each in range(first, last, by)]


def _limits(geometry: PoolGeometry, itemsize: int, *, of_gradient: bool) -> Span:
    """The most rows of a plane that fit the scratch, and the most planes; no rows where one does
    not fit.
    """
    room, rows = most_elements(1), geometry.shape.rows
    height = rows.length if of_gradient else rows.total
    if geometry.shape.columns.total > _WIDEST:
        return (
            1 if _scratch(geometry, itemsize, height, of_gradient=of_gradient) <= room else 0
        ), 1
    while height and _scratch(geometry, itemsize, height, of_gradient=of_gradient) > room:
        height //= 2
    whole = _scratch(geometry, itemsize, max(height, 1), of_gradient=of_gradient)
    return height, max(1, room // whole)


def _scratch(geometry: PoolGeometry, itemsize: int, height: int, *, of_gradient: bool) -> int:
    """Bytes of scratch for rows of a plane of the result."""
    rows, columns = geometry.shape
    reach = (rows.size - 1) * rows.apart
    width = columns.length + columns.step
    if of_gradient:
        windows = min(rows.total, (height + reach) // rows.step + 2)
        return (height + rows.step) * width * 16 + windows * columns.total * _BYTES_OF_WINDOW
    read = min(rows.length, height * rows.step + reach) + rows.step
    return read * width * itemsize + height * columns.total * _BYTES_OF_WINDOW


def lengths_of(given: Given, axes: int) -> tuple[int, ...]:
    """One number for each axis of a pool, where PyTorch passes one for all."""
    numbers = (given,) if isinstance(given, int) else tuple(given)
    return numbers * axes if len(numbers) == 1 else numbers
