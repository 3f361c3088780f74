"""Activations, functions with numbers as arguments and their gradients, and divisions."""

from collections.abc import Callable
from math import log2
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.pointwise_operators import compute
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.runtime.pytorch_api import broadcast_shapes
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


@operator("elu.out")
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


@operator("softplus.out")
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


@operator("pow.Scalar_out")
def _pow_of_number(base: float, exponent: Tensor, *, out: Tensor) -> Any:
    if base <= 0 or not out.is_floating_point():
        return NotImplemented
    return compute("pow", lambda x: tl.exp2(x * log2(base)), (exponent,), out)


@operator("xlogy.OutTensor")
def _xlogy(x: Tensor, y: Tensor, *, out: Tensor) -> Tensor:
    return compute("xlogy", lambda x, y: tl.where(x == 0, x, x * tl.log(y)), (x, y), out)


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


@operator("var.correction")
def _var(
    x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _variance(x, dim, correction, keepdim=keepdim)[0].to(x.dtype)


@operator("std.correction")
def _std(
    x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Tensor:
    return _variance(x, dim, correction, keepdim=keepdim)[0].sqrt().to(x.dtype)


@operator("var_mean.correction")
def _var_mean(
    x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    variance, mean = _variance(x, dim, correction, keepdim=keepdim)
    return variance.to(x.dtype), mean.to(x.dtype)


@operator("std_mean.correction")
def _std_mean(
    x: Tensor, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Tensor, Tensor]:
    variance, mean = _variance(x, dim, correction, keepdim=keepdim)
    return variance.sqrt().to(x.dtype), mean.to(x.dtype)


def _floor_quotient(a: Value, b: Value) -> Value:
    return tl.floor(a / b)


def _remainder(a: Value, b: Value) -> Value:
    return a - b * tl.floor(a / b)


def _integers(name: str, function: Callable[[Value, Value], Value]) -> None:
    """An operator on floating-point numbers or integers; these are exact in float64."""

    def of(a: Any, b: Any, out: Tensor) -> Tensor:
        dtype = None if out.is_floating_point() else torch.float64
        return compute(name, function, (a, b), out, dtype=dtype)

    def fresh(a: Any, b: Any) -> Tensor:
        shapes = [each.shape for each in (a, b) if isinstance(each, Tensor)]
        dtype, shape = torch.result_type(a, b), broadcast_shapes(*shapes)
        return of(a, b, torch.empty(shape, dtype=dtype, device="ahbm"))

    def in_place(a: Tensor, b: Any) -> Tensor:
        return of(a, b, a)

    def to_out(a: Any, b: Any, *, out: Tensor) -> Tensor:
        return of(a, b, out)

    if name == "floor_divide":
        operator(name)(fresh)
        operator(f"{name}_.Tensor")(in_place)
        operator(f"{name}.out")(to_out)
    else:
        operator(f"{name}.Tensor_out")(to_out)


_integers("floor_divide", _floor_quotient)
_integers("remainder", _remainder)


@operator("div.out_mode")
def _div(a: Any, b: Any, *, rounding_mode: str | None, out: Tensor) -> Any:
    if rounding_mode is None:
        return compute("div", tl.div, (a, b), out)
    dtype = None if out.is_floating_point() else torch.float64
    function = _floor_quotient if rounding_mode == "floor" else _truncated_quotient
    return compute("div", function, (a, b), out, dtype=dtype)


def _truncated_quotient(a: Value, b: Value) -> Value:
    quotient = a / b
    return tl.where(quotient < 0, tl.ceil(quotient), tl.floor(quotient))
