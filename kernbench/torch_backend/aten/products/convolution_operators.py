"""Convolutions of any number of axes, and transposed ones, as products with a matrix of windows.

A convolution relates a large tensor, its input, to a small one, its output; a transposed one goes
the other way. The windows of the large tensor under each element of the small one are copied to a
matrix (channels and kernel elements, batch and positions), for each group of channels:

    small = weight x windows(large)           large gradient = sum of windows (weight' x small)

so the three passes of both kinds are one product and one of these copies.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class _Windows:
    """The windows of a tensor of shape `large`, (batch, channels, ...): `small` along each axis."""

    large: Sizes
    small: Sizes
    kernel: Sizes
    stride: Sizes
    padding: Sizes
    dilation: Sizes
    groups: int

    def matrix(self, x: Tensor) -> Tensor:
        """The windows of `x` as (group, channel and kernel element, batch and position)."""
        batch, channels = self.large[:2]
        padded = x.contiguous()
        if any(self.padding):
            padded = self._zeros(x)
            self._inside(padded).copy_(x)
        by_batch, by_channel, *by = padded.stride()
        per_group = channels // self.groups
        windows = padded.as_strided(
            (self.groups, per_group, *self.kernel, batch, *self.small),
            (
                *(by_channel * per_group, by_channel),
                *(step * each for step, each in zip(by, self.dilation, strict=True)),
                by_batch,
                *(step * each for step, each in zip(by, self.stride, strict=True)),
            ),
        )
        return windows.reshape(self.groups, per_group * prod(self.kernel), -1)

    def summed(self, matrix: Tensor) -> Tensor:
        """The tensor whose windows are added up from a matrix as `matrix` returns it."""
        batch, channels = self.large[:2]
        padded = self._zeros(matrix)
        windows = matrix.view(channels, *self.kernel, batch, *self.small)
        for element in product(*map(range, self.kernel)):
            part = windows[(slice(None), *element)].transpose(0, 1)
            padded[(..., *self._under(element))].add_(part)
        return self._inside(padded).contiguous()

    def _under(self, element: Sizes) -> Iterator[slice]:
        """The slice of each axis of the padded tensor that lies under an element of the kernel."""
        axes = zip(element, self.dilation, self.stride, self.small, strict=True)
        for index, dilation, stride, count in axes:
            start = index * dilation
            yield slice(start, start + (count - 1) * stride + 1, stride)

    def _zeros(self, like: Tensor) -> Tensor:
        shape = [
            length + 2 * margin for length, margin in zip(self.large[2:], self.padding, strict=True)
        ]
        return like.new_zeros((*self.large[:2], *shape))

    def _inside(self, padded: Tensor) -> Tensor:
        axes = zip(self.padding, self.large[2:], strict=True)
        return padded[(..., *(slice(margin, margin + length) for margin, length in axes))]


@operator("convolution_overrideable")
def _convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    shape = _output_shape(
        x, weight, (stride, padding, dilation, output_padding), groups, transposed
    )
    large, small = (shape, tuple(x.shape)) if transposed else (tuple(x.shape), shape)
    windows = _windows(large, small, weight, (stride, padding, dilation), groups)
    factors = _grouped(weight, groups)
    if transposed:
        out = windows.summed(torch.bmm(factors.transpose(1, 2), _columns(x, groups)))
    else:
        out = _from_columns(torch.bmm(factors, windows.matrix(x)), shape)
    return out if bias is None else out.add_(bias.view(-1, *[1] * (x.dim() - 2)))


@operator("convolution_backward_overrideable")
def _convolution_backward(
    grad: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    del output_padding
    large, small = (grad, x) if transposed else (x, grad)
    sizes = (tuple(large.shape), tuple(small.shape))
    windows = _windows(*sizes, weight, (stride, padding, dilation), groups)
    factors, of_input, of_weight = _grouped(weight, groups), None, None
    if wanted[0] and transposed:
        of_input = _from_columns(torch.bmm(factors, windows.matrix(grad)), tuple(x.shape))
    elif wanted[0]:
        of_input = windows.summed(torch.bmm(factors.transpose(1, 2), _columns(grad, groups)))
    if wanted[1]:
        gathered = windows.matrix(large).transpose(1, 2)
        of_weight = torch.bmm(_columns(small, groups), gathered).view(weight.shape)
    of_bias = grad.sum([0, *range(2, grad.dim())]) if wanted[2] else None
    return of_input, of_weight, of_bias


def _windows(
    large: Sizes, small: Sizes, weight: Tensor, steps: Sequence[Sequence[int]], groups: int
) -> _Windows:
    stride, padding, dilation = map(tuple, steps)
    return _Windows(
        large=large,
        small=small[2:],
        kernel=tuple(weight.shape[2:]),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def _output_shape(
    x: Tensor, weight: Tensor, steps: Sequence[Sequence[int]], groups: int, transposed: bool
) -> Sizes:
    axes = zip(x.shape[2:], weight.shape[2:], *steps, strict=True)
    if transposed:
        lengths = [
            (length - 1) * by - 2 * margin + apart * (kernel - 1) + more + 1
            for length, kernel, by, margin, apart, more in axes
        ]
        return (x.shape[0], weight.shape[1] * groups, *lengths)
    lengths = [
        (length + 2 * margin - apart * (kernel - 1) - 1) // by + 1
        for length, kernel, by, margin, apart, _ in axes
    ]
    return (x.shape[0], weight.shape[0], *lengths)


def _grouped(weight: Tensor, groups: int) -> Tensor:
    return weight.reshape(groups, weight.shape[0] // groups, -1)


def _columns(x: Tensor, groups: int) -> Tensor:
    """(batch, channels, ...) as (group, channel, batch and position)."""
    return x.transpose(0, 1).reshape(groups, x.shape[1] // groups, -1)


def _from_columns(matrix: Tensor, shape: Sizes) -> Tensor:
    batch, channels, *lengths = shape
    return matrix.view(channels, batch, *lengths).transpose(0, 1).contiguous()
