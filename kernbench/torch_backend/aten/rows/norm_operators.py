"""Normalisation of rows, with its gradients: one kernel on whole rows for each.

The mean and the reciprocal deviation of a row are float32 at least, as PyTorch has them.
"""

from collections.abc import Sequence
from math import prod

import torch

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.kernels.rowwise import RowFunction
from kernbench.torch_backend.launching.rowwise_launch import Formed, launch_rowwise
from runtime.language import tl
from runtime.language.value import Value


@operator("native_layer_norm")
def _layer_norm(
    x: torch.Tensor,
    shape: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
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
    grad: torch.Tensor,
    x: torch.Tensor,
    shape: Sequence[int],
    mean: torch.Tensor,
    scale: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    wanted: Sequence[bool],
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
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


def _rows(*vectors: torch.Tensor | None) -> list[Formed]:
    return [(each.contiguous(), "row") for each in vectors if each is not None]


def _matrix_shape(x: torch.Tensor, shape: Sequence[int]) -> tuple[int, int]:
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
