"""Normalisation of rows, with its gradients: one kernel on whole rows for each.

The mean and the reciprocal deviation of a row are float32 at least, as PyTorch has them.
"""

from collections.abc import Callable, Sequence
from math import prod

import torch

from kernbench.torch_backend.operators import operator
from kernbench.torch_backend.rowwise_launch import Formed, launch_rowwise
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


def _normalised(columns: int, eps: float, *, weighted: bool) -> Callable[..., tuple[Value, ...]]:
    def function(x: Value, *vectors: Value) -> tuple[Value, ...]:
        mean = tl.sum(x, 1, keep_dims=True) * (1 / columns)
        centred = x - mean
        scale = tl.rsqrt(tl.sum(centred * centred, 1, keep_dims=True) * (1 / columns) + eps)
        result = centred * scale
        rest = list(vectors)
        if weighted:
            result = result * rest.pop(0)
        for bias in rest:
            result = result + bias
        return result, mean, scale

    return function


def _gradient(columns: int) -> Callable[..., tuple[Value, ...]]:
    def function(
        grad: Value, x: Value, mean: Value, scale: Value, *weight: Value
    ) -> tuple[Value, ...]:
        normal = (x - mean) * scale
        inner = grad * weight[0] if weight else grad
        along = tl.sum(inner * normal, 1, keep_dims=True) * (1 / columns)
        level = tl.sum(inner, 1, keep_dims=True) * (1 / columns)
        return (inner - level - normal * along) * scale, grad * normal

    return function
