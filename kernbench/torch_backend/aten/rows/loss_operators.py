"""Losses of classes. `cross_entropy_loss` with class numbers is one launch, and its gradient one.

Rows are dealt over the PEs as those of softmax. With class weights, label smoothing, probabilities
in place of class numbers, or more axes than rows and classes, it is `log_softmax` and `nll_loss`,
as it is where a gradient needs a gradient of its own.
"""

from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.element_loss_operators import MEAN, NONE
from kernbench.torch_backend.aten.elements.pointwise_operators import compare_indices
from kernbench.torch_backend.aten.operators import CALLS, operator
from kernbench.torch_backend.launching.launches import (
    launched,
    most_elements,
    pointer_of,
    window_of,
)
from kernbench.torch_backend.launching.rowwise_launch import dealt_rows, most_block_rows
from kernbench.torch_backend.runtime.element_types import hardware_type
from kernbench.torch_backend.runtime.frame_hook import untraced_methods
from kernbench.torch_backend.runtime.pytorch_api import applied, implement
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.requests import PerPe
from runtime.device.kernels import cross_entropy as kernels
from runtime.device.kernels.bounds import IndexBounds

_NAME = "cross_entropy_loss"
_TYPES = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
_PLAIN = frozenset({Tensor, torch.nn.Parameter})
_WIDTH, _BLOCKS = 8192, 4
"""Most columns at once; the blocks of a PE, of which one is computed while others are loaded."""
_ROWS_BYTES = 1 << 17
"""Scratch for the classes, levels and losses of rows, and for the alignment of values."""


def register_cross_entropy(library: torch.library.Library) -> None:
    """Add the operator to a library: with gradients and without."""
    for key in ("AutogradPrivateUse1", "PrivateUse1"):
        implement(library, _NAME, _cross_entropy, key)


def _cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = MEAN,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    if weight is not None or label_smoothing or not _is_supported(x, target):
        return _composed(x, target, weight, reduction, ignore_index, label_smoothing)
    if torch.is_grad_enabled() and x.requires_grad:
        return applied(_CrossEntropy, x, target, reduction, ignore_index)
    return _losses(x, target, reduction, ignore_index)[0]


def _composed(x: Tensor, target: Tensor, *options: Any) -> Tensor:
    """PyTorch's own form."""
    return torch.ops.aten.cross_entropy_loss.default.decompose(x, target, *options)


def _is_supported(x: Tensor, target: Tensor) -> bool:
    """Whether the kernel takes these operands; errors of shapes are those of PyTorch."""
    return (
        type(x) in _PLAIN
        and type(target) in _PLAIN
        and x.dim() == 2
        and x.numel() > 0
        and x.dtype in _TYPES
        and target.dtype == torch.int64
        and target.shape == x.shape[:1]
        and target.device == x.device
    )


@untraced_methods
class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, target: Tensor, reduction: int, ignore_index: int) -> Tensor:
        loss, levels, count = _losses(x, target, reduction, ignore_index)
        ctx.save_for_backward(x, target, levels, count)
        ctx.options = reduction, ignore_index
        return loss

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        (grad,) = grad_outputs
        x, target, levels, count = ctx.saved_tensors
        reduction, ignore_index = ctx.options
        if torch.is_grad_enabled() or type(grad) not in _PLAIN:
            # A gradient of the gradient needs the operators of which it consists.
            with torch.enable_grad():
                result = _composed(x, target, None, reduction, ignore_index, 0.0)
                (gradient,) = torch.autograd.grad(result, [x], grad, create_graph=True)
            return gradient, None, None, None
        CALLS[f"{_NAME}_backward"] += 1
        return _gradient(x, target, levels, count, grad, ctx.options), None, None, None


def _losses(
    x: Tensor, target: Tensor, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss or losses; the levels of rows; the number of rows that have a loss."""
    CALLS[_NAME] += 1
    x, target = _with_rows(x), target.contiguous()
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    parts = dealt_rows(x.shape[0], window_of(x).window)

    def empty(*shape: int, dtype: torch.dtype = wide) -> Tensor:
        return torch.empty(shape, dtype=dtype, device=x.device)

    levels, partial, count = empty(x.shape[0]), empty(len(parts), 2), empty(1)
    loss = empty(*([x.shape[0]] if reduction == NONE else []), dtype=x.dtype)
    windows = [window_of(each) for each in (x, target, levels, partial, loss, count)]
    pointers = [pointer_of(each) for each in windows]
    results = kernels.LossResults(
        levels=pointers[2],
        losses=pointers[4] if reduction == NONE else None,
        partial=pointers[3],
        loss=pointers[4],
        counted=pointers[5],
        is_mean=reduction == MEAN,
    )
    numbered = {pe: (number, *span, len(parts)) for number, (pe, span) in enumerate(parts.items())}
    given = _class_rows(x, target, ignore_index)
    launched(_NAME, kernels.cross_entropy, (PerPe(numbered), given, results), windows, list(parts))
    return loss, levels, count


def _gradient(
    x: Tensor, target: Tensor, levels: Tensor, count: Tensor, grad: Tensor, options: tuple[int, int]
) -> Tensor:
    reduction, ignore_index = options
    x, target, grad = _with_rows(x), target.contiguous(), grad.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    windows = [window_of(each) for each in (x, target, levels, grad, count, out)]
    pointers = [pointer_of(each) for each in windows]
    given = kernels.LossGradient(
        pointers[3], reduction == NONE, pointers[4] if reduction == MEAN else None
    )
    parts = dealt_rows(x.shape[0], windows[0].window)
    rows = _class_rows(x, target, ignore_index)
    arguments = (PerPe(parts), rows, pointers[2], given, pointers[5])
    launched(f"{_NAME}_backward", kernels.gradient, arguments, windows, list(parts))
    return out


def _with_rows(x: Tensor) -> Tensor:
    """A matrix whose rows are contiguous and apart, copied where they are not."""
    rows, columns = x.shape
    has_rows = columns == 1 or x.stride(1) == 1
    return (x if has_rows and (rows == 1 or x.stride(0) >= columns) else x.contiguous()).detach()


def _class_rows(x: Tensor, target: Tensor, ignore_index: int) -> kernels.ClassRows:
    """The rows, with blocks that fit the scratch of a PE."""
    rows, columns = x.shape
    parts = dealt_rows(rows, window_of(x).window)
    of_pe = max(last - first for first, last in parts.values())
    # Equal panels; three of elements, two of results, and the numbers of columns.
    width = -(-columns // -(-columns // _WIDTH))
    of_element = 5 * x.itemsize + 4
    most = most_elements(of_element) - _ROWS_BYTES // of_element
    width = min(width, most)
    bounds = IndexBounds(columns, f"{columns} classes", other=ignore_index)
    return kernels.ClassRows(
        logits=pointer_of(window_of(x)),
        targets=pointer_of(window_of(target)),
        columns=columns,
        pitch=x.stride(0) if rows > 1 else columns,
        height=max(1, min(-(-of_pe // _BLOCKS), most // width, most_block_rows())),
        width=width,
        wide=hardware_type(torch.float64 if x.dtype == torch.float64 else torch.float32),
        ignored=ignore_index,
        bounds=storages().bounded(bounds, target, _NAME),
    )


@operator("nll_loss_forward.output")
def _nll_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    *,
    output: Tensor,
    total_weight: Tensor,
) -> tuple[Tensor, Tensor]:
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
    grad: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
    *,
    grad_input: Tensor,
) -> Tensor:
    if x.dim() != 2:
        return NotImplemented
    chosen, weights = _chosen(x, target, weight, ignore_index)
    scale = -grad / total_weight if reduction == MEAN else -grad
    return grad_input.copy_(torch.where(chosen, (scale * weights).unsqueeze(1), 0.0))


def _chosen(
    x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """A mask of the target's class in each row, and the weight of each row."""
    classes = torch.arange(x.shape[1], device=x.device, dtype=target.dtype)
    chosen = classes == target.unsqueeze(1)
    bounds = IndexBounds(x.shape[1], f"{x.shape[1]} classes", other=ignore_index)
    weights = compare_indices("ne", target, ignore_index, bounds).to(x.dtype)
    if weight is not None:
        weights = weights * torch.where(chosen, weight, 0.0).sum(1)
    return chosen, weights
