"""Products, running extremes and comparisons of whole tensors, by operators of the device."""

from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.fallback_chain import formula
from kernbench.torch_backend.aten.operators import operator


@formula("prod")
def _prod(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    return _product(x.reshape(-1), 0, dtype)


@formula("prod.dim_int")
def _prod_along(
    x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None
) -> Tensor:
    result = _product(x, dim, dtype) if x.dim() else _product(x.view(1), 0, dtype)
    return result.unsqueeze(dim) if keepdim and x.dim() else result


def _product(x: Tensor, dim: int, dtype: torch.dtype | None) -> Tensor:
    """The product along an axis, of both halves until one is left."""
    is_wide = x.is_floating_point() or x.is_complex()
    x = x.to(dtype or (x.dtype if is_wide else torch.int64)).movedim(dim, 0)
    if not x.shape[0]:
        return torch.ones(x.shape[1:], dtype=x.dtype, device=x.device)
    while x.shape[0] > 1:
        half = x.shape[0] // 2
        products = x[:half] * x[half : 2 * half]
        if x.shape[0] % 2:
            products[:1].mul_(x[-1:])
        x = products
    return x[0]


@formula("equal")
def _equal(a: Tensor, b: Tensor) -> Any:
    if a.device != b.device or a.dtype != b.dtype:
        return NotImplemented
    if a.shape != b.shape:
        return False
    if a.is_complex():
        a, b = torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj())
    return not a.numel() or bool((a == b).all().item())


@operator("_cummax_helper")
def _cummax(x: Tensor, values: Tensor, indices: Tensor, dim: int) -> None:
    _running_extreme(x, values, indices, dim, is_maximum=True)


@operator("_cummin_helper")
def _cummin(x: Tensor, values: Tensor, indices: Tensor, dim: int) -> None:
    _running_extreme(x, values, indices, dim, is_maximum=False)


def _running_extreme(
    x: Tensor, values: Tensor, indices: Tensor, dim: int, *, is_maximum: bool
) -> None:
    """The extreme of all elements up to each one and the last position of it, by extremes of 2, 4,
    8 … elements (Hillis and Steele, Data parallel algorithms, 1986). NaN is beyond all numbers.
    """
    best = x.movedim(dim, -1).contiguous()
    length = best.shape[-1]
    place = torch.arange(length, device=x.device).expand(best.shape).contiguous()
    step = 1
    while step < length:
        earlier, own = best[..., :-step], best[..., step:]
        keeps = own >= earlier if is_maximum else own <= earlier
        if x.is_floating_point():
            keeps = keeps | own.isnan()
        chosen = torch.where(keeps, own, earlier)
        places = torch.where(keeps, place[..., step:], place[..., :-step])
        best = torch.cat([best[..., :step], chosen], -1)
        place = torch.cat([place[..., :step], places], -1)
        step *= 2
    values.copy_(best.movedim(-1, dim))
    indices.copy_(place.movedim(-1, dim))
