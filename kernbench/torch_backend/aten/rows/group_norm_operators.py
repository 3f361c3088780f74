"""Normalisation of groups of channels, with its gradients."""

from collections.abc import Sequence

import torch

from kernbench.torch_backend.aten.operators import operator


@operator("native_group_norm")
def _group_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    batch: int,
    channels: int,
    positions: int,
    groups: int,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    shape = (batch, groups, channels // groups * positions)
    wide = _wide(x).reshape(shape)
    mean = wide.mean(2, keepdim=True)
    centred = wide - mean
    scale = (centred.square().mean(2, keepdim=True) + eps).rsqrt()
    result = (centred * scale).view(batch, channels, positions)
    if weight is not None:
        result = result * weight.view(-1, 1)
    if bias is not None:
        result = result + bias.view(-1, 1)
    kept = (mean.view(batch, groups).to(x.dtype), scale.view(batch, groups).to(x.dtype))
    return result.to(x.dtype).view(x.shape), *kept


@operator("native_group_norm_backward")
def _group_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    scale: torch.Tensor,
    weight: torch.Tensor | None,
    batch: int,
    channels: int,
    positions: int,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    by_channel = _wide(grad).reshape(batch, channels, positions)
    shape = (batch, groups, channels // groups * positions)
    normal = (_wide(x).reshape(shape) - mean.unsqueeze(2)) * scale.unsqueeze(2)
    inner = by_channel if weight is None else by_channel * weight.view(-1, 1)
    inner = inner.reshape(shape)
    along = (inner * normal).mean(2, keepdim=True)
    of_input = (inner - inner.mean(2, keepdim=True) - normal * along) * scale.unsqueeze(2)
    of_weight = (by_channel * normal.view(batch, channels, positions)).sum((0, 2))
    return (
        of_input.to(x.dtype).view(x.shape) if wanted[0] else None,
        of_weight.to(x.dtype) if wanted[1] else None,
        by_channel.sum((0, 2)).to(x.dtype) if wanted[2] else None,
    )


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.float64 else x.float()
