"""Pooling by maxima: the windows of each element of the result as the rows of a matrix."""

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator


@operator("max_pool2d_with_indices.out")
def _max_pool(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0, 0),
    dilation: Sequence[int] = (1, 1),
    ceil_mode: bool = False,
    *,
    out: Tensor,
    indices: Tensor,
) -> tuple[Tensor, Tensor]:
    del ceil_mode
    if not x.is_floating_point() or not out.numel():
        return NotImplemented
    by, (length, width) = tuple(stride) or tuple(kernel), x.shape[-2:]
    planes, lengths = prod(x.shape[:-2]), out.shape[-2:]
    # With `ceil_mode`, the last window ends outside of the padding.
    wide = [
        max(size + 2 * margin, (count - 1) * step + apart * (under - 1) + 1)
        for size, margin, count, step, apart, under in zip(
            (length, width), padding, lengths, by, dilation, kernel, strict=True
        )
    ]
    padded = x.new_full((planes, *wide), float("-inf"))
    rows, columns = (
        slice(margin, margin + size) for margin, size in zip(padding, x.shape[-2:], strict=True)
    )
    padded[:, rows, columns].copy_(x.reshape(planes, length, width))
    windows = padded.as_strided(
        (planes, *lengths, *kernel),
        (prod(wide), by[0] * wide[1], by[1], dilation[0] * wide[1], dilation[1]),
    ).reshape(-1, prod(kernel))
    out.copy_(windows.amax(1).view(out.shape))
    # The places in the windows, and from them those in a plane of `x`.
    place = windows.argmax(1).view(planes, *lengths)
    row = torch.div(place, kernel[1], rounding_mode="floor")
    column = place - row * kernel[1]
    first = (torch.arange(lengths[0]) * by[0] - padding[0])[:, None] * width
    start = (first + torch.arange(lengths[1]) * by[1] - padding[1]).to(x.device)
    position = start + row * (dilation[0] * width) + column * dilation[1]
    indices.copy_(position.view(indices.shape))
    return out, indices


@operator("max_pool2d_with_indices_backward.grad_input")
def _max_pool_backward(
    grad: Tensor,
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
    *,
    grad_input: Tensor,
) -> Tensor:
    del kernel, stride, padding, dilation, ceil_mode
    planes = prod(x.shape[:-2])
    summed = grad.new_zeros((planes, prod(x.shape[-2:])))
    summed.scatter_add_(1, indices.reshape(planes, -1), grad.reshape(planes, -1))
    return grad_input.copy_(summed.view(x.shape))
