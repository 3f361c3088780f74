"""Pools by maxima and by means over the last axes, and their gradients: one launch each, in which
a PE combines the elements of windows of the planes in its scratch.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.pool_launch import (
    Given,
    PoolGeometry,
    launch_pool,
    lengths_of,
)
from kernbench.torch_backend.launching.resample_launch import AxisMap, MapEntry, resampled
from kernbench.torch_backend.runtime.element_types import hardware_type
from runtime.device.kernels import pools as kernels

_MOST_NUMBERED = 1 << 30
"""Elements of all axes of a pool that a number of 32 bits counts, from a window on."""


def _max_pool(axes: int) -> None:
    name = f"max_pool{axes}d_with_indices"

    def pooled(
        x: Tensor,
        kernel: Given,
        stride: Given = (),
        padding: Given = 0,
        dilation: Given = 1,
        ceil_mode: bool = False,
        *,
        out: Tensor,
        indices: Tensor,
    ) -> Any:
        steps = kernel, stride, padding, dilation
        shape = pooled_shape(x, axes, steps, ceil_mode=ceil_mode)
        for each in (out, indices):
            if each.shape != shape:
                each.resize_(shape)
        return largest_of(name, x, _geometry(x, out, axes, steps), (out, indices))

    def gradient(
        grad: Tensor,
        x: Tensor,
        kernel: Given,
        stride: Given,
        padding: Given,
        dilation: Given,
        ceil_mode: bool,
        indices: Tensor,
        *,
        grad_input: Tensor,
    ) -> Any:
        del ceil_mode
        geometry = _geometry(x, grad, axes, (kernel, stride, padding, dilation))
        return gradient_of_largest(f"{name}_backward", geometry, (grad, indices), x, grad_input)

    def new_pooled(x: Tensor, *steps: Any, **options: Any) -> Any:
        outs = x.new_empty(0), x.new_empty(0, dtype=torch.int64)
        return pooled(x, *steps, **options, out=outs[0], indices=outs[1])

    def new_gradient(grad: Tensor, x: Tensor, *given: Any) -> Any:
        return gradient(grad, x, *given, grad_input=x.new_empty(0))

    operator(f"{name}.out")(pooled)
    operator(f"{name}_backward.grad_input")(gradient)
    if axes == 3:
        # PyTorch makes the results of the other ones itself.
        operator(name)(new_pooled)
        operator(f"{name}_backward")(new_gradient)


def largest_of(name: str, x: Tensor, geometry: PoolGeometry, outs: tuple[Tensor, Tensor]) -> Any:
    """Write the greatest elements of windows, and their numbers in `x`."""
    if not x.is_floating_point() or geometry.depth.length * geometry.plane > _MOST_NUMBERED:
        return NotImplemented
    if not x.numel() or not outs[0].numel():
        return outs
    written = [each if each.is_contiguous() else _dense(each) for each in outs]
    tensors = [x.contiguous(), *written]
    if not launch_pool(name, kernels.largest_of_windows, geometry, (), tensors):
        return NotImplemented
    for out, each in zip(outs, written, strict=True):
        if out is not each:
            out.copy_(each)
    return outs


def gradient_of_largest(
    name: str, geometry: PoolGeometry, given: tuple[Tensor, Tensor], x: Tensor, out: Tensor
) -> Any:
    """Write the sums of gradients whose index is that of an element of `x`."""
    if not x.is_floating_point():
        return NotImplemented
    if out.shape != x.shape:
        out.resize_(x.shape)
    if not given[0].numel():
        return out.zero_()
    return _summed(name, kernels.gradient_of_largest, geometry, (), given, out)


def _summed(
    name: str,
    kernel: Any,
    geometry: PoolGeometry,
    arguments: tuple[object, ...],
    given: Sequence[Tensor],
    out: Tensor,
) -> Any:
    if not out.numel():
        return out
    target = out if out.is_contiguous() else _dense(out)
    tensors = [*(each.contiguous() for each in given), target]
    types = (_wide(out), *arguments)
    if not launch_pool(name, kernel, geometry, types, tensors, of_gradient=True):
        return NotImplemented
    return out if target is out else out.copy_(target)


def _average_pool(axes: int) -> None:
    name = f"avg_pool{axes}d"

    @operator(f"{name}.out")
    def pooled(
        x: Tensor,
        kernel: Given,
        stride: Given = (),
        padding: Given = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        *,
        out: Tensor,
    ) -> Any:
        if not x.is_floating_point():
            return NotImplemented
        shape = pooled_shape(x, axes, (kernel, stride, padding, 1), ceil_mode=ceil_mode)
        if out.shape != shape:
            out.resize_(shape)
        if not out.numel():
            return out
        steps = (kernel, stride, padding, 1)
        geometry = _geometry(x, out, axes, steps, with_margins=count_include_pad)
        counted = count_include_pad, None if divisor_override is None else float(divisor_override)
        target = out if out.is_contiguous() else _dense(out)
        arguments = (_wide(x), counted)
        tensors = [x.contiguous(), target]
        if not launch_pool(name, kernels.means_of_windows, geometry, arguments, tensors):
            return NotImplemented
        return out if target is out else out.copy_(target)

    @operator(f"{name}_backward.grad_input")
    def gradient(
        grad: Tensor,
        x: Tensor,
        kernel: Given,
        stride: Given,
        padding: Given,
        ceil_mode: bool,
        count_include_pad: bool,
        divisor_override: int | None,
        *,
        grad_input: Tensor,
    ) -> Any:
        del ceil_mode
        if not x.is_floating_point():
            return NotImplemented
        if grad_input.shape != x.shape:
            grad_input.resize_(x.shape)
        steps = (kernel, stride, padding, 1)
        geometry = _geometry(x, grad, axes, steps, with_margins=count_include_pad)
        counted = count_include_pad, None if divisor_override is None else float(divisor_override)
        arguments = f"{name}_backward", kernels.gradient_of_means, geometry, (counted,)
        return _summed(*arguments, [grad], grad_input)

    del pooled, gradient


def _adaptive_max_pool(axes: int) -> None:
    name = f"adaptive_max_pool{axes}d"

    @operator(f"{name}.out")
    def pooled(x: Tensor, counts: Sequence[int], *, out: Tensor, indices: Tensor) -> Any:
        shape = (*x.shape[:-axes], *counts)
        for each in (out, indices):
            if each.shape != shape:
                each.resize_(shape)
        geometry = _divided(x, counts)
        if geometry is not None:
            return largest_of(name, x, geometry, (out, indices))
        return _largest_of_uneven(name, x, counts, (out, indices))

    @operator(f"{name}_backward.grad_input")
    def gradient(grad: Tensor, x: Tensor, indices: Tensor, *, grad_input: Tensor) -> Any:
        geometry = _divided(x, grad.shape[-axes:])
        if geometry is not None:
            return gradient_of_largest(f"{name}_backward", geometry, (grad, indices), x, grad_input)
        planes = prod(x.shape[:-axes])
        summed = grad.new_zeros((planes, prod(x.shape[-axes:])))
        summed.scatter_add_(1, indices.reshape(planes, -1), grad.reshape(planes, -1))
        return grad_input.resize_(x.shape).copy_(summed.view(x.shape))

    del pooled, gradient


def _divided(x: Tensor, counts: Sequence[int]) -> PoolGeometry | None:
    """Windows that divide the last axes; None if some do not."""
    lengths = x.shape[-len(counts) :]
    pairs = list(zip(lengths, counts, strict=True))
    if any(not count or length % count for length, count in pairs):
        return None
    sizes = [length // count for length, count in pairs]
    zeros, ones = [0] * len(sizes), [1] * len(sizes)
    return PoolGeometry(lengths, counts, sizes, sizes, zeros, ones)


def _largest_of_uneven(
    name: str, x: Tensor, counts: Sequence[int], outs: tuple[Tensor, Tensor]
) -> Any:
    """Maxima of windows with different lengths, of which each has as many elements as the longest
    one: its last element is repeated.
    """
    lengths = x.shape[-len(counts) :]
    chosen = [_repeated_windows(*each) for each in zip(lengths, counts, strict=True)]
    maps = [
        AxisMap(length, len(own), [MapEntry(*each) for each in enumerate(own)])
        for length, own in zip(lengths, chosen, strict=True)
    ]
    wide = resampled(name, x, maps)
    geometry = None if wide is None else _divided(wide, counts)
    if wide is None or geometry is None or not x.numel():
        return NotImplemented
    if largest_of(name, wide, geometry, outs) is NotImplemented:
        return NotImplemented
    outs[1].copy_(_numbers_in(lengths, chosen, outs[1]))
    return outs


def _numbers_in(lengths: Sequence[int], chosen: Sequence[Sequence[int]], numbers: Tensor) -> Tensor:
    """The numbers of elements on axes of `lengths`, of which axes of `chosen` elements have the
    given numbers: an index would be an address, which a run without data does not have.
    """
    total, by = torch.zeros_like(numbers), 1
    for axis in reversed(range(len(lengths))):
        own, count = chosen[axis], numbers.shape[axis - len(lengths)]
        size = len(own) // count
        shape = [count if each == axis else 1 for each in range(len(lengths))]
        shifts = torch.tensor([own[each * size] - each * size for each in range(count)])
        lasts = torch.tensor([own[each * size + size - 1] for each in range(count)])
        shifts, lasts = (each.view(shape).to(numbers.device) for each in (shifts, lasts))
        quotient = torch.div(numbers, len(own), rounding_mode="floor")
        # Repeated elements are behind the others of a window.
        place = torch.minimum(numbers - quotient * len(own) + shifts, lasts)
        total = total + place * by
        numbers, by = quotient, by * lengths[axis]
    return total


def _repeated_windows(length: int, count: int) -> list[int]:
    """The elements of nearly equal windows, of which each has as many as the longest one."""
    windows = [
        (number * length // count, -(-(number + 1) * length // count)) for number in range(count)
    ]
    size = max((last - first for first, last in windows), default=0)
    return [min(first + place, last - 1) for first, last in windows for place in range(size)]


def _geometry(
    x: Tensor, out: Tensor, axes: int, steps: Sequence[Given], *, with_margins: bool = True
) -> PoolGeometry:
    kernel, stride, padding, dilation = steps
    return PoolGeometry(
        x.shape[-axes:],
        out.shape[-axes:],
        lengths_of(kernel, axes),
        lengths_of(stride or kernel, axes),
        lengths_of(padding, axes),
        lengths_of(dilation, axes),
        with_margins=with_margins,
    )


def pooled_shape(
    x: Tensor, axes: int, steps: Sequence[Given], *, ceil_mode: bool
) -> tuple[int, ...]:
    """The shape of a pool of `x`, as PyTorch computes it."""
    kernel, stride, padding, dilation = steps
    lengths = list[int]()
    for length, size, step, margin, apart in zip(
        x.shape[-axes:],
        lengths_of(kernel, axes),
        lengths_of(stride or kernel, axes),
        lengths_of(padding, axes),
        lengths_of(dilation, axes),
        strict=True,
    ):
        rest = length + 2 * margin - apart * (size - 1) - 1
        count = (rest + (step - 1 if ceil_mode else 0)) // step + 1
        # The last window begins in the elements or in the margin before them.
        lengths.append(count - (ceil_mode and (count - 1) * step >= length + margin))
    return (*x.shape[:-axes], *lengths)


def _dense(like: Tensor) -> Tensor:
    return torch.empty_like(like, memory_format=torch.contiguous_format)


def _wide(x: Tensor) -> Any:
    return hardware_type(torch.float64 if x.dtype == torch.float64 else torch.float32)


for _axes in (2, 3):
    _max_pool(_axes)
    _average_pool(_axes)
    _adaptive_max_pool(_axes)
