"""Normalisations, with their gradients.

- Of rows: one kernel on whole rows for each. The mean and the reciprocal deviation of a row are
  float32 at least, as PyTorch has them.
- Of batches: statistics of each channel over batch and positions. The schema of the operator does
  not state that it writes the running statistics, so a fallback would lose them.
- Of groups of channels.
- Of weights: a direction, and its length for each index of an axis (T. Salimans, D. P. Kingma,
  "Weight normalization", 2016).
"""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.rowwise_launch import Formed, launch_rowwise
from kernbench.torch_backend.runtime.pytorch_api import vector_norm
from runtime.device.kernels.rowwise import RowFunction
from runtime.language import tl
from runtime.language.value import Value


@operator("native_layer_norm")
def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    matrix = _matrix_shape(x, shape)
    statistics = (*x.shape[: x.dim() - len(shape)], *[1] * len(shape))
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mean, scale = (torch.empty(statistics, dtype=wide, device=x.device) for _ in range(2))
    inputs: list[Formed] = [(x.contiguous(), "matrix"), *_rows(weight, bias)]
    outs: list[Formed] = [(out, "matrix"), (mean, "column"), (scale, "column")]
    function = _normalised(matrix[1], eps, weighted=weight is not None)
    return (
        (out, mean, scale)
        if launch_rowwise("layer_norm", function, matrix, inputs, outs)
        else NotImplemented
    )


@operator("native_layer_norm_backward")
def _layer_norm_backward(
    grad: Tensor,
    x: Tensor,
    shape: Sequence[int],
    mean: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    del bias
    matrix = _matrix_shape(x, shape)
    of_input = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    # What the gradient of the weight sums over the rows.
    products = torch.empty(x.shape, dtype=mean.dtype, device=x.device)
    inputs: list[Formed] = [
        *((each.contiguous(), "matrix") for each in (grad, x)),
        *((each.contiguous(), "column") for each in (mean, scale)),
        *_rows(weight),
    ]
    outs: list[Formed] = [(of_input, "matrix"), (products, "matrix")]
    function = _gradient(matrix[1])
    if not launch_rowwise("layer_norm_backward", function, matrix, inputs, outs):
        return NotImplemented
    of_weight = products.view(matrix).sum(0).view(shape) if wanted[1] else None
    of_bias = grad.reshape(matrix).sum(0).view(shape) if wanted[2] else None
    return (
        of_input if wanted[0] else None,
        None if of_weight is None else of_weight.to(grad.dtype),
        of_bias,
    )


def _rows(*vectors: Tensor | None) -> list[Formed]:
    return [(each.contiguous(), "row") for each in vectors if each is not None]


def _matrix_shape(x: Tensor, shape: Sequence[int]) -> tuple[int, int]:
    columns = prod(shape)
    return x.numel() // max(columns, 1), columns


def _normalised(columns: int, eps: float, *, weighted: bool) -> RowFunction:
    def widened(x: Value) -> tuple[Value, Value]:
        return x * 1.0, tl.sum(x, 1, keep_dims=True) * (1 / columns)

    def centred(x: Value, mean: Value) -> tuple[Value, Value, Value]:
        centre = x - mean
        variance = tl.sum(centre * centre, 1, keep_dims=True) * (1 / columns)
        return centre, mean * 1.0, tl.rsqrt(variance + eps)

    def scaled(
        centre: Value, mean: Value, scale: Value, *vectors: Value
    ) -> tuple[Value, Value, Value]:
        result, rest = centre * scale, list(vectors)
        if weighted:
            result = result * rest.pop(0)
        for bias in rest:
            result = result + bias
        return result, mean * 1.0, scale * 1.0

    return RowFunction((widened, centred, scaled), kept=2, with_rows=2)


def _gradient(columns: int) -> RowFunction:
    def inner(
        grad: Value, x: Value, mean: Value, scale: Value, *weight: Value
    ) -> tuple[Value, ...]:
        normal = (x - mean) * scale
        inner = grad * weight[0] if weight else grad * 1.0
        along = tl.sum(inner * normal, 1, keep_dims=True) * (1 / columns)
        level = tl.sum(inner, 1, keep_dims=True) * (1 / columns)
        return normal, inner, grad * normal, along, level, scale * 1.0

    def outer(
        normal: Value, inner: Value, products: Value, along: Value, level: Value, scale: Value
    ) -> tuple[Value, Value]:
        return (inner - level - normal * along) * scale, products * 1.0

    return RowFunction((inner, outer), kept=3)


@operator("native_batch_norm")
def _batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
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
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    mean: Tensor | None,
    scale: Tensor | None,
    training: bool,
    eps: float,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
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


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


def _axes(x: Tensor) -> list[int]:
    return [0, *range(2, x.dim())]


def _by_channel(vector: Tensor, x: Tensor) -> Tensor:
    return vector.view(-1, *[1] * (x.dim() - 2))


def _normal(x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return (x - _by_channel(mean, x)) * _by_channel(scale, x)


def _scaled(normal: Tensor, weight: Tensor | None, bias: Tensor | None, x: Tensor) -> Tensor:
    result = normal if weight is None else normal * _by_channel(weight, x)
    return (result if bias is None else result + _by_channel(bias, x)).to(x.dtype)


@operator("native_group_norm")
def _group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    positions: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
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
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    batch: int,
    channels: int,
    positions: int,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
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


@operator("_weight_norm_interface")
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    norms = vector_norm(v, _others(v, dim), keepdim=True)
    return v * (g / norms), norms


@operator("_weight_norm_interface_backward")
def _weight_norm_backward(
    grad: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    # The length of the gradient along the direction.
    along = (grad * v).sum(_others(v, dim), keepdim=True) / norms
    return (g / norms) * (grad - v * (along / norms)), along


def _others(v: Tensor, dim: int) -> list[int]:
    return [axis for axis in range(v.dim()) if axis != dim % v.dim()]
