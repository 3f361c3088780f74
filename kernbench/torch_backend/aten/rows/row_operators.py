"""Operators made of several kernels: concatenation, losses of classes, triangles.

Each step is a kernel of the device, as if the program had called it.
"""

from collections.abc import Sequence

import torch

from kernbench.torch_backend.aten.elements.element_loss_operators import MEAN, NONE
from kernbench.torch_backend.aten.elements.pointwise_operators import compare_indices
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.kernels.bounds import IndexBounds
from kernbench.torch_backend.launching.launches import launch_copies
from kernbench.torch_backend.runtime.element_types import COMPUTED


@operator("cat.out", types=None)
def _cat(tensors: Sequence[torch.Tensor], dim: int = 0, *, out: torch.Tensor) -> torch.Tensor:
    # An empty vector concatenates with any shape, as PyTorch has it.
    parts = [each for each in tensors if each.shape != (0,)]
    if not parts:
        return out.resize_(0)
    axis = dim % parts[0].dim()
    shape = list(parts[0].shape)
    shape[axis] = sum(each.shape[axis] for each in parts)
    if list(out.shape) != shape:
        out.resize_(shape)
    if any(each.dtype != out.dtype and {each.dtype, out.dtype} - COMPUTED for each in parts):
        return NotImplemented
    targets = out.split([each.shape[axis] for each in parts], axis)
    launch_copies("cat", list(zip(targets, parts, strict=True)))
    return out


@operator("nll_loss_forward.output")
def _nll_loss(
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    *,
    output: torch.Tensor,
    total_weight: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    if x.dim() != 2:
        return NotImplemented
    chosen, weights = _chosen(x, target, weight, ignore_index)
    losses = -torch.where(chosen, x, 0.0).sum(1) * weights
    if reduction == NONE:
        return output.resize_(losses.shape).copy_(losses), total_weight.zero_()
    total_weight.copy_(weights.sum())
    total = losses.sum()
    return output.copy_(total / total_weight if reduction == MEAN else total), total_weight


@operator("nll_loss_backward.grad_input")
def _nll_loss_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: torch.Tensor,
    *,
    grad_input: torch.Tensor,
) -> torch.Tensor:
    if x.dim() != 2:
        return NotImplemented
    chosen, weights = _chosen(x, target, weight, ignore_index)
    scale = -grad / total_weight if reduction == MEAN else -grad
    return grad_input.copy_(torch.where(chosen, (scale * weights).unsqueeze(1), 0.0))


def _chosen(
    x: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, ignore_index: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """A mask of the target's class in each row, and the weight of each row."""
    classes = torch.arange(x.shape[1], device=x.device, dtype=target.dtype)
    chosen = classes == target.unsqueeze(1)
    bounds = IndexBounds(x.shape[1], f"{x.shape[1]} classes", other=ignore_index)
    weights = compare_indices("ne", target, ignore_index, bounds).to(x.dtype)
    if weight is not None:
        weights = weights * torch.where(chosen, weight, 0.0).sum(1)
    return chosen, weights


def _triangle(name: str, *, lower: bool) -> None:
    @operator(f"{name}.out")
    def triangle(x: torch.Tensor, diagonal: int = 0, *, out: torch.Tensor) -> torch.Tensor:
        rows = torch.arange(x.shape[-2], device=x.device, dtype=torch.int32).unsqueeze(1)
        columns = torch.arange(x.shape[-1], device=x.device, dtype=torch.int32)
        distance = columns - rows
        kept = distance <= diagonal if lower else distance >= diagonal
        zero = torch.zeros((), dtype=x.dtype)
        return torch.where(kept, x, zero.to(x.device), out=out)

    del triangle


_triangle("tril", lower=True)
_triangle("triu", lower=False)
