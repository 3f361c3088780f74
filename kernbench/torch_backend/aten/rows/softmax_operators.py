"""Softmax and its logarithm, with their gradients: one kernel on whole rows.

Along another axis than the last one, and for rows that do not fit the scratch of a PE, the same
function in several kernels.
"""

from collections.abc import Mapping, Sequence
from math import prod

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.rowwise_launch import launch_rowwise, matrix
from kernbench.torch_backend.runtime.element_types import FLOATS
from runtime.device.kernels.rowwise import RowChain
from runtime.language import tl
from runtime.language.value import Value


@operator("_softmax.out", types=FLOATS)
def _softmax(x: Tensor, dim: int, half_to_float: bool, *, out: Tensor) -> Tensor:
    del half_to_float
    if _on_rows("softmax", _SOFTMAX, dim, {"x": x}, out):
        return out
    powers = _shifted(x, dim).exp()
    return out.copy_(powers / powers.sum(dim, keepdim=True))


@operator("_log_softmax.out", types=FLOATS)
def _log_softmax(x: Tensor, dim: int, half_to_float: bool, *, out: Tensor) -> Tensor:
    del half_to_float
    if _on_rows("log_softmax", _LOG_SOFTMAX, dim, {"x": x}, out):
        return out
    shifted = _shifted(x, dim)
    return out.copy_(shifted - shifted.exp().sum(dim, keepdim=True).log())


@operator("_softmax_backward_data.out")
def _softmax_backward(
    grad: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype, *, grad_input: Tensor
) -> Tensor:
    del input_dtype
    given = {"grad": grad, "y": output}
    if _on_rows("softmax_backward", _SOFTMAX_GRADIENT, dim, given, grad_input):
        return grad_input
    product = grad * output
    return grad_input.copy_(product - output * product.sum(dim, keepdim=True))


@operator("_log_softmax_backward_data.out")
def _log_softmax_backward(
    grad: Tensor, output: Tensor, dim: int, input_dtype: torch.dtype, *, out: Tensor
) -> Tensor:
    del input_dtype
    given = {"grad": grad, "y": output}
    if _on_rows("log_softmax_backward", _LOG_SOFTMAX_GRADIENT, dim, given, out):
        return out
    return out.copy_(grad - output.exp() * grad.sum(dim, keepdim=True))


def _on_rows(
    name: str, chains: Sequence[RowChain], dim: int, inputs: Mapping[str, Tensor], out: Tensor
) -> bool:
    x = next(iter(inputs.values()))
    if not x.dim() or dim % x.dim() != x.dim() - 1 or not out.is_contiguous():
        return False
    shape = (prod(x.shape[:-1]), x.shape[-1])
    given = {each: matrix(tensor) for each, tensor in inputs.items()}
    return launch_rowwise(name, chains, shape, given, {"out": matrix(out)})


def _powers(x: Value) -> tuple[Value, Value]:
    powers = tl.exp(x - tl.max(x, 1, keep_dims=True))
    return powers, 1.0 / tl.sum(powers, 1, keep_dims=True)


def _log_shares(x: Value) -> Value:
    highest = tl.max(x, 1, keep_dims=True)
    # The exponentials are computed before the difference, which costs less to compute again.
    level = highest + tl.log(tl.sum(tl.exp(x - highest), 1, keep_dims=True))
    return x - level


def _gradient(grad: Value, y: Value) -> Value:
    product = grad * y
    return product - y * tl.sum(product, 1, keep_dims=True)


def _log_gradient(grad: Value, y: Value) -> Value:
    return grad - tl.exp(y) * tl.sum(grad, 1, keep_dims=True)


_SOFTMAX = (
    # In one chain, the exponentials would be computed twice.
    RowChain(_powers, ("x",), matrices=("powers",), columns=("factor",)),
    RowChain(tl.mul, ("powers", "factor"), matrices=("out",)),
)
_LOG_SOFTMAX = (RowChain(_log_shares, ("x",), matrices=("out",)),)
_SOFTMAX_GRADIENT = (RowChain(_gradient, ("grad", "y"), matrices=("out",)),)
_LOG_SOFTMAX_GRADIENT = (RowChain(_log_gradient, ("grad", "y"), matrices=("out",)),)


def _shifted(x: Tensor, dim: int) -> Tensor:
    """The elements in float32 at least, less the greatest along `dim`."""
    wide = x if x.dtype == torch.float64 else x.float()
    if not wide.numel():
        # PyTorch has no greatest element of no elements.
        return wide
    return wide - wide.amax(dim, keepdim=True)
