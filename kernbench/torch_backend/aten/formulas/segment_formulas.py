"""Reductions of segments, which follow one another along an axis, and their gradients: by the
number of the segment of each element.

Lengths of several rows are those of segments in each row, along the last axis of the lengths.
"""

from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.fallback_chain import formula

_REDUCTIONS = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}
_STARTS = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -torch.inf, "min": torch.inf}


@formula("segment_reduce")
def _segment_reduce(
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    indices: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    given = _lengths(lengths, offsets)
    if given is None or indices is not None or not data.numel() or reduce not in _REDUCTIONS:
        return NotImplemented
    dim, count = given.dim() - 1, data.shape[axis]
    if dim != axis % data.dim() or (not unsafe and not _divides(given, count)):
        return NotImplemented
    segments = _segments(given, data)
    shape = [*data.shape]
    # One more segment, of the elements behind all of them.
    shape[dim] = given.shape[-1] + 1
    start = torch.full(shape, _STARTS[reduce] if initial is None else initial, dtype=data.dtype)
    start = start.to(data.device)
    total = start.scatter_reduce(dim, segments, data, _REDUCTIONS[reduce]).narrow(
        dim, 0, given.shape[-1]
    )
    if reduce != "mean":
        return total.contiguous()
    sizes = _beside(given, data)
    mean = total / sizes.clamp(min=1).to(data.dtype)
    return mean if initial is not None else torch.where(sizes == 0, torch.nan, mean)


@formula("_segment_reduce_backward")
def _segment_reduce_backward(
    grad: Tensor,
    output: Tensor,
    data: Tensor,
    reduce: str,
    *,
    lengths: Tensor | None = None,
    offsets: Tensor | None = None,
    axis: int = 0,
    initial: float | None = None,
) -> Any:
    given = _lengths(lengths, offsets)
    if given is None or given.dim() - 1 != axis % data.dim():
        return NotImplemented
    dim, segments = given.dim() - 1, _segments(given, data)
    is_inside = segments < given.shape[-1]
    places = segments.clamp(max=given.shape[-1] - 1)

    def of_elements(totals: Tensor) -> Tensor:
        return totals.gather(dim, places)

    def counted(is_counted: Tensor) -> Tensor:
        """The number of such elements in the segment of each one."""
        shape = [*data.shape]
        shape[dim] = given.shape[-1] + 1
        zeros = torch.zeros(shape, dtype=torch.int32, device=data.device)
        totals = zeros.scatter_add(dim, segments, is_counted.to(torch.int32))
        return totals.gather(dim, segments)

    slope, result = of_elements(grad), of_elements(output)
    if reduce == "mean":
        slope = slope / of_elements(_beside(given, data).expand(grad.shape)).to(data.dtype)
    elif reduce in {"max", "min"}:
        is_best = data.isnan() | (data == result)
        shares = counted(is_best)
        # PyTorch divides positive gradients alone among equal elements.
        shared = torch.where((shares > 1) & (slope > 0), slope / shares.clamp(min=1), slope)
        slope = torch.where(is_best, shared, 0.0)
    elif reduce == "prod":
        is_zero, is_nan = data == 0, data.isnan()
        plain = torch.where(is_zero | is_nan, 1.0, data)
        rest = of_elements(
            _segment_reduce(plain, "prod", lengths=given, axis=dim, unsafe=True, initial=initial)
        )
        zeros, others = (counted(each) - each.int() for each in (is_zero, is_nan))
        rest = torch.where(others > 0, torch.nan, torch.where(zeros > 0, 0.0, rest))
        slope = torch.where(is_zero | is_nan, slope * rest, slope * result / data)
    return torch.where(is_inside, slope, 0.0)


def _lengths(lengths: Tensor | None, offsets: Tensor | None) -> Tensor | None:
    if lengths is not None or offsets is None:
        return lengths
    return offsets[..., 1:] - offsets[..., :-1]


def _divides(lengths: Tensor, count: int) -> bool:
    """Whether each row of lengths divides an axis."""
    return bool(((lengths >= 0).all() & (lengths.sum(-1) == count).all()).item())


def _segments(lengths: Tensor, data: Tensor) -> Tensor:
    """The number of the segment of each element, that of the segments behind all of them."""
    dim = lengths.dim() - 1
    ends = lengths.to(torch.int64).cumsum(-1)
    numbers = torch.arange(data.shape[dim], device=data.device)
    numbers = numbers.expand(*lengths.shape[:-1], data.shape[dim]).contiguous()
    return _beside(torch.searchsorted(ends, numbers, right=True), data).expand(data.shape)


def _beside(rows: Tensor, data: Tensor) -> Tensor:
    """Numbers for the first axes, in a shape that broadcasts over the others."""
    return rows.view(*rows.shape, *[1] * (data.dim() - rows.dim()))
