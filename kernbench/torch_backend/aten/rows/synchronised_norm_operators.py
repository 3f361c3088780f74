"""The parts of batch normalisation over ranks, which `torch.nn.SyncBatchNorm` calls.

Each rank computes the statistics of its rows; the module gathers them, and combines them weighted
by the numbers of rows. PyTorch has these operators for GPUs alone.
"""

from torch import Tensor

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.aten.rows.norm_operators import (
    axes_of_channel,
    by_channel,
    in_float32,
)


@operator("batch_norm_stats")
def _statistics(x: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The mean of each channel, and 1 / sqrt(variance + eps)."""
    wide, axes = in_float32(x), axes_of_channel(x)
    mean = wide.mean(axes)
    variance = (wide - by_channel(mean, x)).square().mean(axes)
    return mean, (variance + eps).rsqrt()


@operator("batch_norm_gather_stats_with_counts")
def _combined(
    x: Tensor,
    means: Tensor,
    scales: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    momentum: float,
    eps: float,
    counts: Tensor,
) -> tuple[Tensor, Tensor]:
    """The statistics of all ranks: rows of `means` and `scales`, each of `counts` elements."""
    del x
    counts = in_float32(counts).view(-1, 1)
    total = counts.sum()
    mean = (means * counts).sum(0) / total
    # E[(x - mean)^2] of a rank is its variance, and the square of the distance of the means.
    squares = scales.square().reciprocal() - eps + (means - mean).square()
    variance = (squares * counts).sum(0) / total
    if running_mean is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), momentum)
    if running_var is not None:
        unbiased = variance * (total / (total - 1))
        running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return mean, (variance + eps).rsqrt()


@operator("batch_norm_elemt")
def _normalised(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, mean: Tensor, scale: Tensor, eps: float
) -> Tensor:
    del eps
    result = (in_float32(x) - by_channel(mean, x)) * by_channel(scale, x)
    if weight is not None:
        result = result * by_channel(weight, x)
    if bias is not None:
        result = result + by_channel(bias, x)
    return result.to(x.dtype)


@operator("batch_norm_backward_reduce")
def _gradient_sums(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    of_input: bool,
    of_weight: bool,
    of_bias: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
    """The sums of the gradient, and of its products with x - mean; gradients of the weights."""
    wide, axes = in_float32(grad), axes_of_channel(x)
    total = wide.sum(axes)
    along = (wide * (in_float32(x) - by_channel(mean, x))).sum(axes)
    dtype = x.dtype if weight is None else weight.dtype
    return (
        total if of_input else None,
        along if of_input else None,
        (along * scale).to(dtype) if of_weight else None,
        total.to(dtype) if of_bias else None,
    )


@operator("batch_norm_backward_elemt")
def _gradient(
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    scale: Tensor,
    weight: Tensor | None,
    total: Tensor,
    along: Tensor,
    counts: Tensor,
) -> Tensor:
    """The gradient of the input: `total` and `along` are the sums of all ranks."""
    count = in_float32(counts).sum()
    slope = along / count * scale.square()
    apart = in_float32(x) - by_channel(mean, x)
    result = in_float32(grad) - by_channel(total / count, x) - apart * by_channel(slope, x)
    factor = scale if weight is None else scale * weight
    return (result * by_channel(factor, x)).to(x.dtype)
