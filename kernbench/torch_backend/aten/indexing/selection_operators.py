"""Operators on rows that select their elements, place elements there, or sum them one by one.

They work along the last axis, other axes are moved there. A row must fit the scratch of a PE; one
that does not is left to the host.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.indexing.sort_operators import sorted_along
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.launches import (
    launched,
    most_elements,
    pointer_of,
    window_of,
)
from kernbench.torch_backend.launching.rowwise_launch import dealt_rows
from kernbench.torch_backend.runtime.element_types import hardware_type
from runtime.core.requests import PerPe
from runtime.device.kernels import selection as kernels
from runtime.device.kernels.scans import running_products, running_sums

_MOST_FOUND = 64
"""Greatest elements that are selected one by one; for more, the whole row is sorted."""


@operator("topk.values")
def _topk(
    x: Tensor,
    count: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,  # noqa: A002 - PyTorch's name
    *,
    values: Tensor,
    indices: Tensor,
) -> Any:
    del sorted
    if x.dtype == torch.bool:
        return NotImplemented
    if not values.numel():
        return values, indices
    if count > _MOST_FOUND or (count > 1 and x.dtype == torch.int64):
        ordered = sorted_along(x, dim, descending=largest)
        if ordered is None:
            return NotImplemented
        for out, each in zip((values, indices), ordered, strict=True):
            out.copy_(each.narrow(dim, 0, count))
        return values, indices
    return _greatest(x, count, dim, (values, indices), largest=largest)


def _extreme(name: str, overload: str, *, largest: bool) -> None:
    @operator(f"{name}.{overload}")
    def of_rows(x: Tensor, dim: int, keepdim: bool = False, **outs: Tensor) -> Any:
        # PyTorch has different names for the second result of max and min.
        values = outs.pop(name)
        (indices,) = outs.values()
        if not x.dim():
            return NotImplemented
        kept = [each if keepdim else each.unsqueeze(dim) for each in (values, indices)]
        greatest_row = _greatest(x, 1, dim, (kept[0], kept[1]), largest=largest)
        return greatest_row if greatest_row is NotImplemented else (values, indices)

    @operator(f"arg{name}.out")
    def number(x: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Tensor) -> Tensor:
        rows = x.reshape(-1) if dim is None else x
        if not rows.dim():
            return out.zero_()
        whole = out if dim is not None and keepdim else out.reshape(-1) if dim is None else out
        kept = whole if dim is None or keepdim else whole.unsqueeze(dim)
        indices = _greatest(rows, 1, -1 if dim is None else dim, (None, kept), largest=largest)
        return indices if indices is NotImplemented else out

    del of_rows, number


def _greatest(
    x: Tensor, count: int, dim: int, outs: tuple[Tensor | None, Tensor], *, largest: bool
) -> Any:
    """The greatest or least elements along an axis, in order, and their numbers."""
    if not x.dim() or not x.numel():
        return NotImplemented
    rows = x.movedim(dim, -1).contiguous()
    if x.dtype == torch.bool:
        rows = rows.to(torch.uint8)
    bounds = None
    if count > 1:
        # What is found becomes the first bound, and no element counts as less than the second one.
        if x.dtype == torch.int64:
            return NotImplemented
        lowest, highest = _limits(rows.dtype)
        bounds = lowest if largest else highest
    numbers = torch.empty((*rows.shape[:-1], count), dtype=torch.int64, device=x.device)
    arguments = (count, bounds, largest)
    # The elements, a type of the numbers, a mask, and what is left.
    if not launch_rows("greatest", kernels.greatest, rows, arguments, [rows, numbers], 3, 9):
        return NotImplemented
    values, indices = outs
    if values is not None:
        values.copy_(rows.gather(-1, numbers).movedim(-1, dim))
    indices.copy_(numbers.movedim(-1, dim))
    return outs


def _limits(dtype: torch.dtype) -> tuple[tuple[float, float], tuple[float, float]]:
    """Numbers below and above all others, each with the next one."""
    if dtype.is_floating_point:
        largest, infinite = torch.finfo(dtype).max, float("inf")
        return (-infinite, -largest), (infinite, largest)
    limits = torch.iinfo(dtype)
    return (limits.min, limits.min + 1), (limits.max, limits.max - 1)


_extreme("max", "dim_max", largest=True)
_extreme("min", "dim_min", largest=False)


def launch_rows(
    name: str,
    kernel: Callable[..., None],
    rows: Tensor,
    arguments: tuple[object, ...],
    tensors: list[Tensor],
    copies: int,
    other_bytes: int,
) -> bool:
    """Launch a kernel on whole rows, of which `copies` and `other_bytes` for each element are in
    the scratch; False if a row does not fit.
    """
    columns = rows.shape[-1]
    count = prod(rows.shape[:-1])
    row_bytes = columns * (copies * rows.itemsize + other_bytes) + 64
    height = most_elements(row_bytes)
    if height * row_bytes > most_elements(1):
        return False
    windows = [window_of(each) for each in tensors]
    parts = dealt_rows(count, windows[0].window)
    shape = kernels.RowShape(height, columns)
    given = (PerPe(parts), shape, *arguments, *map(pointer_of, windows))
    launched(name, kernel, given, windows, list(parts))
    return True


@operator("bincount")
def _bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
    # The length of the result depends on the elements: the host reads the greatest one.
    length = max(minlength, int(x.max()) + 1 if x.numel() else 0)
    if weights is not None or not length or x.numel() * length > 1 << 24:
        return NotImplemented
    classes = torch.arange(length, device=x.device, dtype=x.dtype)
    return (classes.unsqueeze(1) == x).to(torch.int32).sum(1)


def _scan(name: str, kernel: Callable[..., None], values: int) -> None:
    """An operator whose kernel keeps `values` rows in the type in which it computes."""

    @operator(f"{name}.out")
    def scanned(x: Tensor, dim: int, *, dtype: torch.dtype | None = None, out: Tensor) -> Any:
        del dtype
        if not x.dim() or not x.numel():
            return out.copy_(x)
        rows = x.movedim(dim, -1).contiguous().to(out.dtype)
        wide = torch.float32 if out.dtype in {torch.float16, torch.bfloat16} else out.dtype
        result = torch.empty(rows.shape, dtype=out.dtype, device=x.device)
        given = (name, kernel, rows, (hardware_type(wide),), [rows, result])
        if not launch_rows(*given, 2, values * wide.itemsize):
            return NotImplemented
        return out.copy_(result.movedim(-1, dim))

    del scanned


_scan("cumsum", running_sums, 2)
_scan("cumprod", running_products, 2)
