"""Gradients of margin losses, which PyTorch does not decompose."""

from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.fallback_chain import formula

_MEAN = 1
"""The number of the reduction in PyTorch; 0 is none, 2 the sum."""


@formula("multi_margin_loss_backward")
def _multi_margin_backward(
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    p: float,
    margin: float,
    weight: Tensor | None = None,
    reduction: int = _MEAN,
) -> Any:
    if not x.numel():
        return NotImplemented
    rows, classes = x.reshape(-1, x.shape[-1] if x.dim() else 1), target.reshape(-1, 1)
    numbers = torch.arange(rows.shape[1], device=x.device)
    excess = rows - rows.gather(1, classes) + margin
    is_active = (excess > 0) & (numbers != classes)
    slopes = torch.where(is_active, 1.0 if p == 1 else 2 * excess, 0.0) / rows.shape[1]
    if weight is not None:
        slopes = slopes * weight[classes]
    slopes = torch.where(numbers == classes, -slopes.sum(1, keepdim=True), slopes)
    return _scaled(slopes, grad, reduction).view(x.shape)


@formula("multilabel_margin_loss_backward")
def _multilabel_margin_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, is_target: Tensor
) -> Any:
    if not x.numel():
        return NotImplemented
    rows, labels, marked = (
        each.reshape(-1, x.shape[-1] if x.dim() else 1) for each in (x, target, is_target)
    )
    # The labels of a row end at the first negative one.
    is_label = (labels < 0).cumsum(1) == 0
    places = labels.clamp_min(0)
    excess = 1 - rows.gather(1, places).unsqueeze(2) + rows.unsqueeze(1)
    is_active = (excess > 0) & is_label.unsqueeze(2) & (marked == 0).unsqueeze(1)
    active = is_active.to(x.dtype)
    slopes = active.sum(1).scatter_add(1, places, -active.sum(2)) / rows.shape[1]
    return _scaled(slopes, grad, reduction).view(x.shape)


def _scaled(slopes: Tensor, grad: Tensor, reduction: int) -> Tensor:
    """Slopes of rows times the gradient of each, or of the mean or sum of all."""
    factors = grad.reshape(-1, 1)
    return slopes * (factors / slopes.shape[0] if reduction == _MEAN else factors)
