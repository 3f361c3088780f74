"""Images and volumes sampled at the places of a grid: sums of rows of channels, by the numbers of
the rows around each place; gradients by autograd through the same sums.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any, cast

import torch
from torch import Tensor

from kernbench.torch_backend.aten.fallback_chain import formula
from kernbench.torch_backend.runtime.pytorch_api import above_autograd, decomposition_of

_LINEAR, _NEAREST = 0, 1
"""The numbers of PyTorch for interpolations; 2 is bicubic."""
_ZEROS, _REFLECTION = 0, 2
"""The numbers of PyTorch for paddings; 1 is the border."""
_PLANE = 2
"""The axes of an image."""
_MOST_ROWS = 1 << 18
"""Rows of a volume that are summed; the host samples it at more places."""
Sampler = Callable[[Tensor, Tensor, int, int, bool], Any]
_Corner = tuple[Tensor, Tensor, Tensor | None]


@formula("grid_sampler_3d")
def _sampled(x: Tensor, grid: Tensor, interpolation: int, padding: int, align_corners: bool) -> Any:
    if not _is_taken(x, grid, interpolation):
        return NotImplemented
    channels = x.shape[1]
    table = x.movedim(1, -1).reshape(-1, channels)
    parts = list[Tensor]()
    for rows, is_inside, weight in _corners(x, grid, interpolation, (padding, align_corners)):
        chosen = table.index_select(0, rows.view(-1)).view(*rows.shape, channels)
        part = chosen if weight is None else chosen * weight.unsqueeze(-1)
        parts.append(torch.where(is_inside.unsqueeze(-1), part, 0.0))
    return reduce(torch.add, parts).movedim(-1, 1)


def _is_taken(x: Tensor, grid: Tensor, interpolation: int) -> bool:
    """Whether an image is not empty, and its interpolation and the number of its rows are those of
    this formula.
    """
    axes = grid.shape[-1]
    rows = grid.numel() // axes * (1 if interpolation == _NEAREST else 1 << axes)
    is_small = axes == _PLANE or rows <= _MOST_ROWS
    return bool(interpolation in {_LINEAR, _NEAREST} and x.numel() and rows and is_small)


def _corners(
    x: Tensor, grid: Tensor, interpolation: int, border: tuple[int, bool]
) -> Iterator[_Corner]:
    """The elements around each place of a grid: the numbers of their rows, whether they are inside
    of the image, and their shares.
    """
    padding, is_aligned = border
    lengths, axes = x.shape[2:], grid.shape[-1]
    # The grid has the last axis first.
    columns = [grid[..., axes - 1 - axis] for axis in range(axes)]
    places = [
        _within(_place(each, length, is_aligned), length, padding, is_aligned)
        for each, length in zip(columns, lengths, strict=True)
    ]
    choices = list[list[tuple[Tensor, Tensor | None]]]()
    for each in places:
        low = each.detach().floor()
        if interpolation == _NEAREST:
            choices.append([(each.detach().round(), None)])
        else:
            choices.append([(low, low + 1 - each), (low + 1, each - low)])
    images = torch.arange(len(x), device=x.device).view(-1, *[1] * axes)
    for corner in product(*choices):
        rows, shares = images, [share for _, share in corner if share is not None]
        inside = list[Tensor]()
        for (number, _), length in zip(corner, lengths, strict=True):
            inside.append((number >= 0) & (number < length))
            rows = rows * length + torch.where(inside[-1], number, 0.0).to(torch.int64)
        yield rows, reduce(torch.logical_and, inside), reduce(torch.mul, shares) if shares else None


def _place(coordinate: Tensor, length: int, is_aligned: bool) -> Tensor:
    """The place of a coordinate between -1 and 1, in elements of an axis."""
    if is_aligned:
        return (coordinate + 1) / 2 * (length - 1)
    return ((coordinate + 1) * length - 1) / 2


def _within(place: Tensor, length: int, padding: int, is_aligned: bool) -> Tensor:
    """A place, moved to the axis unless zeros surround it. At the border it has no slope."""
    if padding == _ZEROS:
        return place
    if padding == _REFLECTION:
        low, span = (0.0, length - 1) if is_aligned else (-0.5, length)
        beyond = place - low
        beyond = torch.where(beyond < 0, -beyond, beyond)
        if not span:
            return place * 0
        rest = torch.fmod(beyond, span)
        is_even = torch.remainder((beyond.detach() / span).floor(), 2) == 0
        place = torch.where(is_even, rest, span - rest) + low
    is_free = (place > 0) & (place < length - 1)
    return torch.where(is_free, place, place.detach().clamp(0, length - 1))


@formula("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def _sampled_backward(
    grad: Tensor,
    x: Tensor,
    grid: Tensor,
    interpolation: int,
    padding: int,
    align_corners: bool,
    output_mask: list[bool],
) -> Any:
    sampled: Sampler | None = _sampled
    if interpolation not in {_LINEAR, _NEAREST} and grid.shape[-1] == _PLANE:
        sampled = decomposition_of(torch.ops.aten.grid_sampler_2d.default)
    elif not _is_taken(x, grid, interpolation):
        return NotImplemented
    if sampled is None or not x.numel():
        return NotImplemented
    with above_autograd():
        image, places = (each.detach().requires_grad_() for each in (x, grid))
        result = sampled(image, places, interpolation, padding, align_corners)
        computed = torch.autograd.grad(result, (image, places), grad, allow_unused=True)
    # The nearest element has no slope along the grid. Cast: the stub of `grad` leaves out None.
    slopes = cast(Sequence[Tensor | None], computed)
    filled = [
        torch.zeros_like(of) if slope is None else slope.detach()
        for slope, of in zip(slopes, (x, grid), strict=True)
    ]
    return tuple(slope if used else None for slope, used in zip(filled, output_mask, strict=True))
