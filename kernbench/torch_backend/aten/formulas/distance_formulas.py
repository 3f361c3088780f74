"""Distances of rows and their gradients, and sums of products."""

from math import inf
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.fallback_chain import formula
from kernbench.torch_backend.runtime.pytorch_api import vector_norm

_MOST_DIFFERENCES = 1 << 26
"""Differences of all pairs of rows, beyond which the host computes."""


@formula("_cdist_forward")
def _cdist(a: Tensor, b: Tensor, p: float, mode: int | None) -> Any:
    del mode
    differences = _differences(a, b)
    return differences if differences is NotImplemented else vector_norm(differences, [-1], order=p)


def _differences(a: Tensor, b: Tensor) -> Any:
    if a.numel() * b.shape[-2] > _MOST_DIFFERENCES:
        return NotImplemented
    return a.unsqueeze(-2) - b.unsqueeze(-3)


@formula("_cdist_backward")
def _cdist_backward(grad: Tensor, a: Tensor, b: Tensor, p: float, distances: Tensor) -> Any:
    differences = _differences(a, b)
    if differences is NotImplemented:
        return NotImplemented
    return _slopes(grad, differences, p, distances).sum(-2)


def _slopes(grad: Tensor, differences: Tensor, p: float, distances: Tensor) -> Tensor:
    """The gradients of the differences, 0 where a distance has none."""
    grad, length = grad.unsqueeze(-1), distances.unsqueeze(-1)
    if p == 0:
        return torch.zeros_like(differences)
    sign = differences.sign()
    if p == 1:
        return grad * sign
    if p == inf:
        return grad * sign * (differences.abs() == length)
    if p == 2:
        return torch.where(length == 0, 0.0, grad * differences / length)
    parts = sign * differences.abs().pow(p - 1) * grad / length.pow(p - 1)
    return torch.where((length == 0) | (differences == 0), 0.0, parts)


@formula("_pdist_forward")
def _pdist(x: Tensor, p: float = 2) -> Tensor:
    first, second = _pairs(x)
    if not first.numel():
        return x.new_empty(0)
    return vector_norm(x.index_select(0, first) - x.index_select(0, second), [-1], order=p)


@formula("_pdist_backward")
def _pdist_backward(grad: Tensor, x: Tensor, p: float, distances: Tensor) -> Tensor:
    first, second = _pairs(x)
    differences = x.index_select(0, first) - x.index_select(0, second)
    slopes = _slopes(grad, differences, p, distances)
    return torch.zeros_like(x).index_add(0, first, slopes).index_add(0, second, -slopes)


def _pairs(x: Tensor) -> tuple[Tensor, Tensor]:
    rows = x.shape[0]
    first, second = torch.triu_indices(rows, rows, 1, device=x.device)
    return first, second


@formula("addbmm")
def _addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    products = torch.bmm(a, b).sum(0)
    scaled = products if alpha == 1 else products * alpha
    # Of a factor 0, the operand may be NaN.
    return scaled.expand(x.shape).clone() if beta == 0 else x * beta + scaled
