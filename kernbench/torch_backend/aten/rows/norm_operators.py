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
from functools import partial
from math import prod
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.rowwise_launch import (
    Formed,
    column,
    launch_rowwise,
    matrix,
    row,
)
from kernbench.torch_backend.runtime.element_types import FLOATS
from kernbench.torch_backend.runtime.pytorch_api import vector_norm
from runtime.device.kernels.rowwise import RowChain
from runtime.language import tl
from runtime.language.value import Value


@operator("native_layer_norm", types=FLOATS)
def _layer_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mean, scale = _statistics(x, shape), _statistics(x, shape)
    rows = _rows(weight=weight, bias=bias)
    columns = prod(shape)
    chains = (
        RowChain(partial(_mean, columns=columns), ("x",), columns=("mean",), keeps="x"),
        RowChain(
            partial(_centred, columns=columns, eps=eps), ("x", "mean"), ("centre",), ("scale",)
        ),
        RowChain(
            partial(_with_vectors, weighted=weight is not None),
            ("centre", "scale", *rows),
            ("out",),
        ),
    )
    outs = {"out": matrix(out), "mean": column(mean), "scale": column(scale)}
    inputs = {"x": matrix(x), **rows}
    is_done = launch_rowwise("layer_norm", chains, _matrix_shape(x, shape), inputs, outs)
    return (out, mean, scale) if is_done else NotImplemented


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
    matrix_shape = _matrix_shape(x, shape)
    of_input = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    # What the gradient of the weight sums over the rows.
    products = torch.empty(x.shape, dtype=mean.dtype, device=x.device)
    rows, columns = _rows(weight=weight), prod(shape)
    chains = (
        RowChain(
            partial(_along_and_level, columns=columns),
            ("grad", "x", "mean", "scale", *rows),
            matrices=("normal", "inner", "products"),
            columns=("along", "level"),
        ),
        RowChain(
            _of_input_and_level,
            ("normal", "inner", "along", "scale", "level"),
            matrices=("of_input",),
        ),
    )
    inputs = {
        "x": matrix(x),
        "grad": matrix(grad),
        "mean": column(mean),
        "scale": column(scale),
        **rows,
    }
    outs = {"of_input": matrix(of_input), "products": matrix(products)}
    if not launch_rowwise("layer_norm_backward", chains, matrix_shape, inputs, outs):
        return NotImplemented
    of_weight = products.view(matrix_shape).sum(0).view(shape) if wanted[1] else None
    of_bias = grad.reshape(matrix_shape).sum(0).view(shape) if wanted[2] else None
    return (
        of_input if wanted[0] else None,
        None if of_weight is None else of_weight.to(grad.dtype),
        of_bias,
    )


@operator("_fused_rms_norm", types=FLOATS)
def _rms_norm(
    x: Tensor, shape: Sequence[int], weight: Tensor | None, eps: float | None
) -> tuple[Tensor, Tensor]:
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    scale, rows = _statistics(x, shape), _rows(weight=weight)
    added = torch.finfo(scale.dtype).eps if eps is None else eps
    chains = (
        RowChain(
            partial(_reciprocal_root, columns=prod(shape), eps=added),
            ("x",),
            columns=("scale",),
            keeps="x",
        ),
        RowChain(
            partial(_with_vectors, weighted=weight is not None), ("x", "scale", *rows), ("out",)
        ),
    )
    inputs, outs = {"x": matrix(x), **rows}, {"out": matrix(out), "scale": column(scale)}
    if launch_rowwise("rms_norm", chains, _matrix_shape(x, shape), inputs, outs):
        return out, scale
    # A row that does not fit the scratch of a PE.
    axes, wide = list(range(x.dim() - len(shape), x.dim())), x.to(scale.dtype)
    scale = (wide.square().mean(axes, keepdim=True) + added).rsqrt()
    normal = wide * scale
    return (normal if weight is None else normal * weight).to(x.dtype), scale


@operator("_fused_rms_norm_backward")
def _rms_norm_backward(
    grad: Tensor,
    x: Tensor,
    shape: Sequence[int],
    scale: Tensor,
    weight: Tensor | None,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None]:
    matrix_shape, columns = _matrix_shape(x, shape), prod(shape)
    of_input = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    products = torch.empty(x.shape, dtype=scale.dtype, device=x.device)
    rows = _rows(weight=weight)
    chains = (
        RowChain(
            partial(_along, columns=columns),
            ("grad", "x", "scale", *rows),
            matrices=("normal", "inner", "products"),
            columns=("along",),
        ),
        RowChain(
            _of_input,
            ("normal", "inner", "along", "scale"),
            matrices=("of_input",),
        ),
    )
    inputs = {"x": matrix(x), "grad": matrix(grad), "scale": column(scale), **rows}
    outs = {"of_input": matrix(of_input), "products": matrix(products)}
    if not launch_rowwise("rms_norm_backward", chains, matrix_shape, inputs, outs):
        return NotImplemented
    of_weight = None
    if weight is not None and wanted[1]:
        of_weight = products.view(matrix_shape).sum(0).view(shape).to(weight.dtype)
    return of_input if wanted[0] else None, of_weight


def _statistics(x: Tensor, shape: Sequence[int]) -> Tensor:
    """A number for each row, in which the chains compute."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    lengths = (*x.shape[: x.dim() - len(shape)], *[1] * len(shape))
    return torch.empty(lengths, dtype=wide, device=x.device)


def _rows(**vectors: Tensor | None) -> dict[str, Formed]:
    return {name: row(each) for name, each in vectors.items() if each is not None}


def _matrix_shape(x: Tensor, shape: Sequence[int]) -> tuple[int, int]:
    columns = prod(shape)
    return x.numel() // max(columns, 1), columns


def _mean(x: Value, *, columns: int) -> Value:
    return tl.sum(x, 1, keep_dims=True) * (1 / columns)


def _centred(x: Value, mean: Value, *, columns: int, eps: float) -> tuple[Value, Value]:
    centre = x - mean
    return centre, _reciprocal_root(centre, columns=columns, eps=eps)


def _reciprocal_root(x: Value, *, columns: int, eps: float) -> Value:
    """The reciprocal root of the mean of squares."""
    return tl.rsqrt(tl.sum(x * x, 1, keep_dims=True) * (1 / columns) + eps)


def _with_vectors(x: Value, scale: Value, *vectors: Value, weighted: bool) -> Value:
    result = x * scale
    if len(vectors) == 2:
        return tl.fma(result, *vectors)
    if weighted:
        return result * vectors[0]
    return result + vectors[0] if vectors else result


def _along_and_level(
    grad: Value, x: Value, mean: Value, scale: Value, *weight: Value, columns: int
) -> tuple[Value, ...]:
    normal = (x - mean) * scale
    inner = grad * weight[0] if weight else grad * 1.0
    along = tl.sum(inner * normal, 1, keep_dims=True) * (1 / columns)
    level = tl.sum(inner, 1, keep_dims=True) * (1 / columns)
    return normal, inner, grad * normal, along, level


def _along(grad: Value, x: Value, scale: Value, *weight: Value, columns: int) -> tuple[Value, ...]:
    normal = x * scale
    inner = grad * weight[0] if weight else grad * 1.0
    return normal, inner, grad * normal, tl.sum(inner * normal, 1, keep_dims=True) * (1 / columns)


def _of_input(normal: Value, inner: Value, along: Value, scale: Value) -> Value:
    return (inner - normal * along) * scale


def _of_input_and_level(
    normal: Value, inner: Value, along: Value, scale: Value, level: Value
) -> Value:
    return (inner - level - normal * along) * scale


@operator("native_batch_norm", "_native_batch_norm_legit", types=FLOATS)
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
    wide, axes, count = in_float32(x), axes_of_channel(x), x.numel() // x.shape[1]
    if not training:
        assert running_mean is not None, "PyTorch checks that there are statistics"
        assert running_var is not None, "PyTorch checks that there are statistics"
        scale = (running_var + eps).rsqrt()
        saved = wide.new_empty(0)
        return _scaled(_normal(wide, running_mean, scale), weight, bias, x), saved, saved
    mean = wide.mean(axes)
    variance = (wide - by_channel(mean, x)).square().mean(axes)
    scale = (variance + eps).rsqrt()
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        unbiased = variance * (count / max(count - 1, 1))
        running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return _scaled(_normal(wide, mean, scale), weight, bias, x), mean, scale


@operator("_batch_norm_with_update", types=FLOATS)
def _batch_norm_with_update(x: Tensor, *given: Any) -> tuple[Tensor, ...]:
    *tensors, momentum, eps = given
    # The last result is memory that other devices reserve for the gradient.
    reserved = torch.empty(0, dtype=torch.uint8, device=x.device)
    return *_batch_norm(x, *tensors, True, momentum, eps), reserved


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
    wide, axes, count = in_float32(grad), axes_of_channel(x), x.numel() // x.shape[1]
    normal = _normal(in_float32(x), mean, scale)
    of_weight, of_bias = (wide * normal).sum(axes), wide.sum(axes)
    if training:
        wide = wide - by_channel(of_bias / count, x) - normal * by_channel(of_weight / count, x)
    of_input = _scaled(wide * by_channel(scale, x), weight, None, x) if wanted[0] else None
    return (
        of_input,
        of_weight.to(x.dtype if weight is None else weight.dtype) if wanted[1] else None,
        of_bias.to(x.dtype if weight is None else weight.dtype) if wanted[2] else None,
    )


def in_float32(x: Tensor) -> Tensor:
    """`x`, in which statistics are computed: in float32 at least."""
    return x if x.dtype == torch.float64 else x.float()


def axes_of_channel(x: Tensor) -> list[int]:
    """The axes of the elements of a channel: batch and positions."""
    return [0, *range(2, x.dim())]


def by_channel(vector: Tensor, x: Tensor) -> Tensor:
    """A number for each channel, in a shape that broadcasts over `x`."""
    return vector.view(-1, *[1] * (x.dim() - 2))


def _normal(x: Tensor, mean: Tensor, scale: Tensor) -> Tensor:
    return (x - by_channel(mean, x)) * by_channel(scale, x)


def _scaled(normal: Tensor, weight: Tensor | None, bias: Tensor | None, x: Tensor) -> Tensor:
    result = normal if weight is None else normal * by_channel(weight, x)
    return (result if bias is None else result + by_channel(bias, x)).to(x.dtype)


@operator("native_group_norm", types=FLOATS)
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
    wide = in_float32(x).reshape(shape)
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
    by_channel = in_float32(grad).reshape(batch, channels, positions)
    shape = (batch, groups, channels // groups * positions)
    normal = (in_float32(x).reshape(shape) - mean.unsqueeze(2)) * scale.unsqueeze(2)
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
