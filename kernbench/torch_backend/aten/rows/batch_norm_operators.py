"""Batch normalisation, with its gradients: statistics of each channel over batch and positions.

Its schema does not state that it writes the running statistics, so a fallback would lose them.
"""

from collections.abc import Sequence

import torch

from kernbench.torch_backend.aten.operators import operator


@operator("native_batch_norm")
def _batch_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    wide, axes, count = _wide(x), _axes(x), x.numel() // x.shape[1]
    if not training:
        assert running_mean is not None, "PyTorch checks that there are statistics"
        assert running_var is not None, "PyTorch checks that there are statistics"
        scale = (running_var + eps).rsqrt()
        saved = wide.new_empty(0)
        return _scaled(_normal(wide, running_mean, scale), weight, bias, x), saved, saved
    mean = wide.mean(axes)
    variance = (wide - _by_channel(mean, x)).square().mean(axes)
    scale = (variance + eps).rsqrt()
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        unbiased = variance * (count / max(count - 1, 1))
        running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return _scaled(_normal(wide, mean, scale), weight, bias, x), mean, scale


@operator("native_batch_norm_backward")
def _batch_norm_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    weight: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    mean: torch.Tensor | None,
    scale: torch.Tensor | None,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    if not training:
        assert running_var is not None, "PyTorch checks that there are statistics"
        mean, scale = running_mean, (running_var + eps).rsqrt()
    assert mean is not None, "the forward pass has returned it"
    assert scale is not None, "the forward pass has returned it"
    wide, axes, count = _wide(grad), _axes(x), x.numel() // x.shape[1]
    normal = _normal(_wide(x), mean, scale)
    of_weight, of_bias = (wide * normal).sum(axes), wide.sum(axes)
    if training:
        wide = wide - _by_channel(of_bias / count, x) - normal * _by_channel(of_weight / count, x)
    of_input = _scaled(wide * _by_channel(scale, x), weight, None, x) if wanted[0] else None
    return (
        of_input,
        of_weight.to(x.dtype if weight is None else weight.dtype) if wanted[1] else None,
        of_bias.to(x.dtype if weight is None else weight.dtype) if wanted[2] else None,
    )


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _axes(x: torch.Tensor) -> list[int]:
    return [0, *range(2, x.dim())]


def _by_channel(vector: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return vector.view(-1, *[1] * (x.dim() - 2))


def _normal(x: torch.Tensor, mean: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return (x - _by_channel(mean, x)) * _by_channel(scale, x)


def _scaled(
    normal: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, x: torch.Tensor
) -> torch.Tensor:
    result = normal if weight is None else normal * _by_channel(weight, x)
    return (result if bias is None else result + _by_channel(bias, x)).to(x.dtype)
