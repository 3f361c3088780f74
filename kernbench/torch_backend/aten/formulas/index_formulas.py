"""Searches, histograms and indices, by comparisons of all pairs and operators on rows.

A comparison of all pairs has an element for each; with more than `_MOST_PAIRS` the host computes.
"""

from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.fallback_chain import formula

_MOST_PAIRS = 1 << 26


@formula("searchsorted.Tensor")
def _searchsorted(
    sequence: Tensor,
    values: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Any:
    length = sequence.shape[-1]
    if values.numel() * length > _MOST_PAIRS or sequence.dtype != values.dtype:
        return NotImplemented
    if sorter is not None:
        sequence = sequence.gather(-1, sorter)
    rows = sequence.unsqueeze(-2) if sequence.dim() > 1 else sequence
    points = values.unsqueeze(-1)
    is_right = right if side is None else side == "right"
    beyond = rows > points if is_right else rows >= points
    # Of no element, also those at a NaN, which is beyond all.
    return (length - beyond.sum(-1)).to(torch.int32 if out_int32 else torch.int64)


@formula("searchsorted.Scalar")
def _searchsorted_number(sequence: Tensor, value: float, **options: Any) -> Any:
    point = torch.full((), value, dtype=sequence.dtype, device=sequence.device)
    return _searchsorted(sequence, point, **options)


@formula("bucketize.Tensor")
def _bucketize(
    values: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False
) -> Any:
    return _searchsorted(boundaries, values, out_int32=out_int32, right=right)


@formula("histc", is_of_narrow_types=True)
def _histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Any:  # noqa: A002
    if x.numel() * bins > _MOST_PAIRS or bins < 1 or min > max:
        return NotImplemented
    wide = x.reshape(-1) if x.is_floating_point() else x.reshape(-1).double()
    low, high = float(min), float(max)
    if low == high and x.numel():
        low, high = wide.min().item(), wide.max().item()
    if low == high:
        low, high = low - 1, high + 1
    if not abs(low) + abs(high) < float("inf"):
        return NotImplemented
    place = ((wide - low) * bins / (high - low)).floor()
    # The greatest number is in the last bin.
    place = torch.where(wide == high, bins - 1, place)
    place = torch.where((wide >= low) & (wide <= high), place, -1.0)
    return _counts(place, bins).to(x.dtype)


@formula("bincount")
def _bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
    if x.dim() != 1 or not x.numel() or x.is_floating_point() or minlength < 0:
        return NotImplemented
    if int(x.min().item()) < 0:
        return NotImplemented
    bins = max(int(x.max().item()) + 1, minlength)
    if x.numel() * bins > _MOST_PAIRS:
        return NotImplemented
    if weights is None:
        return _counts(x, bins)
    wide = weights if weights.dtype == torch.float32 else weights.double()
    is_own = _bins(x, bins) == x
    return torch.where(is_own, wide, 0.0).sum(-1)


def _counts(place: Tensor, bins: int) -> Tensor:
    return (_bins(place, bins) == place).sum(-1)


def _bins(place: Tensor, bins: int) -> Tensor:
    """The numbers of the bins, as a column."""
    return torch.arange(bins, device=place.device, dtype=place.dtype).unsqueeze(-1)


@formula("repeat_interleave.Tensor")
def _repeat_interleave(repeats: Tensor, *, output_size: int | None = None) -> Any:
    if repeats.dim() != 1 or not repeats.numel() or int(repeats.min().item()) < 0:
        return NotImplemented
    ends = repeats.cumsum(0)
    total = int(ends[-1].item()) if output_size is None else output_size
    if total * repeats.numel() > _MOST_PAIRS:
        return NotImplemented
    numbers = torch.arange(total, device=repeats.device, dtype=ends.dtype)
    return torch.searchsorted(ends, numbers, right=True).to(repeats.dtype)


@formula("take")
def _take(x: Tensor, index: Tensor) -> Any:
    if not x.numel():
        return NotImplemented
    return x.reshape(-1)[index.reshape(-1)].view(index.shape)


@formula("put")
def _put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = x.reshape(-1).clone()
    flat.index_put_((index.reshape(-1),), source.reshape(-1), accumulate)
    return flat.view(x.shape)


@formula("index_fill.int_Scalar", "index_fill.int_Tensor")
def _index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    table = x.clone() if x.dim() else x.reshape(1).clone()
    number = value if isinstance(value, Tensor) else torch.full((), value, device=x.device)
    table.movedim(dim, 0).index_put_((index,), number.to(x.device, x.dtype))
    return table.view(x.shape)


@formula("index_select")
def _index_select(x: Tensor, dim: int, index: Tensor) -> Any:
    if x.dim():
        return NotImplemented
    return x.view(1).index_select(dim, index.reshape(-1)).view(())


@formula("index_add")
def _index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Any:
    if x.dim():
        return NotImplemented
    rows = source.reshape(-1)
    return x.view(1).index_add(dim, index.reshape(-1), rows, alpha=alpha).view(())


@formula("index_copy")
def _index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    if x.dim():
        return NotImplemented
    return x.view(1).index_copy(dim, index.reshape(-1), source.reshape(-1)).view(())
