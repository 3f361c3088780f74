"""Activations, functions with numbers as arguments and their gradients, and variances."""

from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.pointwise_operators import compute
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.runtime.element_types import FLOATS
from runtime.language import tl
from runtime.language.value import Value


@operator("leaky_relu_backward.grad_input")
def _leaky_relu_backward(
    grad: Tensor, x: Tensor, slope: float, is_result: bool, *, grad_input: Tensor
) -> Tensor:
    del is_result

    def function(grad: Value, x: Value) -> Value:
        return tl.where(x > 0, grad, grad * float(slope))

    return compute("leaky_relu_backward", function, (grad, x), grad_input)


@operator("softshrink_backward.grad_input", "hardshrink_backward.grad_input")
def _shrink_backward(grad: Tensor, x: Tensor, width: float, *, grad_input: Tensor) -> Tensor:
    def function(grad: Value, x: Value) -> Value:
        return tl.where(tl.abs(x) <= float(width), grad * 0.0, grad)

    return compute("shrink_backward", function, (grad, x), grad_input)


@operator("elu.out", types=FLOATS)
def _elu(
    x: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1, *, out: Tensor
) -> Tensor:
    def function(x: Value) -> Value:
        bent = (tl.exp(x * float(input_scale)) - 1.0) * float(alpha * scale)
        return tl.where(x > 0, x * float(scale), bent)

    return compute("elu", function, (x,), out)


@operator("elu_backward.grad_input")
def _elu_backward(
    grad: Tensor,
    alpha: float,
    scale: float,
    input_scale: float,
    is_result: bool,
    x: Tensor,
    *,
    grad_input: Tensor,
) -> Tensor:
    def function(grad: Value, x: Value) -> Value:
        # Of the result y = alpha scale (exp(input_scale x) - 1), or of x itself.
        bent = (
            (x + float(alpha * scale)) * float(input_scale)
            if is_result
            else tl.exp(x * float(input_scale)) * float(alpha * scale * input_scale)
        )
        return grad * tl.where(x > 0, float(scale), bent)

    return compute("elu_backward", function, (grad, x), grad_input)


@operator("softplus.out", types=FLOATS)
def _softplus(x: Tensor, beta: float = 1, threshold: float = 20, *, out: Tensor) -> Tensor:
    def function(x: Value) -> Value:
        scaled = x * float(beta)
        return tl.where(scaled > threshold, x, tl.log(tl.exp(scaled) + 1.0) * (1 / beta))

    return compute("softplus", function, (x,), out)


@operator("softplus_backward.grad_input")
def _softplus_backward(
    grad: Tensor, x: Tensor, beta: float, threshold: float, *, grad_input: Tensor
) -> Tensor:
    def function(grad: Value, x: Value) -> Value:
        scaled = x * float(beta)
        return tl.where(scaled > threshold, grad, grad * tl.sigmoid(scaled))

    return compute("softplus_backward", function, (grad, x), grad_input)


def _variance(
    x: Tensor, dim: Any, correction: float | None, *, keepdim: bool
) -> tuple[Tensor, Tensor]:
    """The variance and the mean along axes, in two passes, in float32 at least."""
    axes = sorted({axis % x.dim() for axis in dim}) if dim else list(range(x.dim()))
    wide = x if x.dtype == torch.float64 else x.float()
    mean = wide.mean(axes, keepdim=True) if axes else wide
    count = x.numel() // max(mean.numel(), 1)
    left = max(count - (1 if correction is None else correction), 0)
    variance = (wide - mean).square().sum(axes, keepdim=True) if axes else (wide - mean).square()
    shape = [length for axis, length in enumerate(mean.shape) if keepdim or axis not in axes]
    return (variance / left).view(shape), mean.view(shape)


@operator("var.correction", types=FLOATS)
def _var(
    x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _variance(x, dim, correction, keepdim=keepdim)[0].to(x.dtype)


@operator("std.correction", types=FLOATS)
def _std(
    x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _variance(x, dim, correction, keepdim=keepdim)[0].sqrt().to(x.dtype)


@operator("var_mean.correction", types=FLOATS)
def _var_mean(
    x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    variance, mean = _variance(x, dim, correction, keepdim=keepdim)
    return variance.to(x.dtype), mean.to(x.dtype)


@operator("std_mean.correction", types=FLOATS)
def _std_mean(
    x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    variance, mean = _variance(x, dim, correction, keepdim=keepdim)
    return variance.sqrt().to(x.dtype), mean.to(x.dtype)
