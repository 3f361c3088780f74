"""Losses of corresponding elements: one kernel for the elements, one or two for the mean or sum."""

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.pointwise_operators import compute
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.runtime.element_types import FLOATS
from kernbench.torch_backend.runtime.pytorch_api import broadcast_shapes
from runtime.language import tl
from runtime.language.value import Value

NONE, MEAN = 0, 1
"""PyTorch's numbers of the reductions of a loss; the third one is the sum."""
_LEAST_LOG, _LEAST_PRODUCT = -100.0, 1e-12
"""PyTorch's limits of `binary_cross_entropy` and of the divisor in its gradient."""


def _reduced(losses: Tensor, reduction: int) -> Tensor:
    if reduction == NONE:
        return losses
    return losses.mean() if reduction == MEAN else losses.sum()


def _scale(x: Tensor, reduction: int) -> float:
    """The gradient of a reduction."""
    return 1 / max(x.numel(), 1) if reduction == MEAN else 1.0


@operator("mse_loss.out", types=FLOATS)
def _mse_loss(x: Tensor, target: Tensor, reduction: int = MEAN, *, out: Tensor) -> Tensor:
    losses = _reduced((x - target).square(), reduction)
    return out.resize_(losses.shape).copy_(losses)


@operator("mse_loss_backward")
def _mse_loss_backward(grad: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    return (x - target) * (2 * _scale(x, reduction)) * grad


@operator("smooth_l1_loss.out", types=FLOATS)
def _smooth_l1_loss(
    x: Tensor, target: Tensor, reduction: int = MEAN, beta: float = 1.0, *, out: Tensor
) -> Tensor:
    def function(x: Value, target: Value) -> Value:
        distance = tl.abs(x - target)
        return tl.where(distance < beta, distance * distance * (0.5 / beta), distance - 0.5 * beta)

    losses = _reduced(compute("smooth_l1_loss", function, (x, target), _of(x, target)), reduction)
    return out.resize_(losses.shape).copy_(losses)


@operator("smooth_l1_loss_backward.grad_input")
def _smooth_l1_loss_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float, *, grad_input: Tensor
) -> Tensor:
    scale = _scale(x, reduction)

    def function(grad: Value, x: Value, target: Value) -> Value:
        return grad * _limited((x - target) * (1 / beta), 1.0) * scale

    return compute("smooth_l1_loss_backward", function, (grad, x, target), grad_input)


@operator("huber_loss", types=FLOATS)
def _huber_loss(x: Tensor, target: Tensor, reduction: int = MEAN, delta: float = 1.0) -> Tensor:
    def function(x: Value, target: Value) -> Value:
        distance = tl.abs(x - target)
        far = (distance - 0.5 * delta) * float(delta)
        return tl.where(distance <= delta, distance * distance * 0.5, far)

    return _reduced(compute("huber_loss", function, (x, target), _of(x, target)), reduction)


@operator("huber_loss_backward.out")
def _huber_loss_backward(
    grad: Tensor, x: Tensor, target: Tensor, reduction: int, delta: float, *, grad_input: Tensor
) -> Tensor:
    scale = _scale(x, reduction)

    def function(grad: Value, x: Value, target: Value) -> Value:
        return grad * _limited(x - target, float(delta)) * scale

    return compute("huber_loss_backward", function, (grad, x, target), grad_input)


@operator("binary_cross_entropy", types=FLOATS)
def _binary_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    def function(x: Value, target: Value, *weights: Value) -> Value:
        hit = tl.maximum(tl.log(x), _LEAST_LOG) * target
        missed = tl.maximum(tl.log(1.0 - x), _LEAST_LOG) * (1.0 - target)
        loss = (hit + missed) * -1.0
        return loss * weights[0] if weights else loss

    given = (x, target) if weight is None else (x, target, weight)
    return _reduced(compute("binary_cross_entropy", function, given, _of(x, target)), reduction)


@operator("binary_cross_entropy_backward")
def _binary_cross_entropy_backward(
    grad: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = MEAN
) -> Tensor:
    scale = _scale(x, reduction)

    def function(grad: Value, x: Value, target: Value, *weights: Value) -> Value:
        slope = (x - target) / tl.maximum((1.0 - x) * x, _LEAST_PRODUCT)
        result = grad * slope * scale
        return result * weights[0] if weights else result

    given = (grad, x, target) if weight is None else (grad, x, target, weight)
    return compute("binary_cross_entropy_backward", function, given, torch.empty_like(x))


@operator("log_sigmoid_forward", types=FLOATS)
def _log_sigmoid(x: Tensor) -> tuple[Tensor, Tensor]:
    def function(x: Value) -> Value:
        return tl.minimum(x, 0.0) - tl.log(tl.exp(tl.abs(x) * -1.0) + 1.0)

    # The second result is a buffer of the CPU's gradient.
    return compute("log_sigmoid", function, (x,), torch.empty_like(x)), x.new_empty(0)


@operator("log_sigmoid_backward")
def _log_sigmoid_backward(grad: Tensor, x: Tensor, buffer: Tensor) -> Tensor:
    del buffer

    def function(grad: Value, x: Value) -> Value:
        return grad * tl.sigmoid(x * -1.0)

    return compute("log_sigmoid_backward", function, (grad, x), torch.empty_like(x))


def _of(x: Tensor, target: Tensor) -> Tensor:
    """A result of two tensors, for each element."""
    shape = broadcast_shapes(x.shape, target.shape)
    return torch.empty(shape, dtype=torch.result_type(x, target), device=x.device)


def _limited(x: Value, most: float) -> Value:
    return tl.minimum(tl.maximum(x, -most), most)
