"""Operators that resample the last axes: upsampling, means over adaptive windows, reflected and
repeated margins, and their gradients, which resample by the transposed matrices.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.resample_launch import AxisMap, MapEntry, resampled
from kernbench.torch_backend.runtime.pytorch_api import integers

_CUBIC = -0.75
"""The parameter of the cubic convolution (R. Keys, 1981) with which PyTorch computes."""
MapOf = Callable[[int, int, float | None, torch.dtype], AxisMap]
"""The map of an axis: its length, that of the result, the given scale, the type of positions."""


def _step(
    length: int, count: int, scale: float | None, dtype: torch.dtype, *, corners: bool = False
) -> Tensor:
    """The distance of neighbours of the result in elements, as a number of type `dtype`."""
    if corners:
        return torch.tensor((length - 1) / (count - 1) if count > 1 else 0.0, dtype=dtype)
    # PyTorch divides numbers of the type.
    whole = torch.tensor(length, dtype=dtype) / torch.tensor(count, dtype=dtype)
    return torch.tensor(1 / scale, dtype=dtype) if scale else whole


def _positions(
    length: int, count: int, scale: float | None, dtype: torch.dtype, *, corners: bool
) -> Tensor:
    step, numbers = _step(length, count, scale, dtype, corners=corners), torch.arange(count)
    return step * numbers.to(dtype) if corners else step * (numbers.to(dtype) + 0.5) - 0.5


def _nearest(
    length: int, count: int, scale: float | None, dtype: torch.dtype, *, middle: float
) -> AxisMap:
    numbers = torch.arange(count, dtype=dtype) + middle
    positions = (numbers * _step(length, count, scale, dtype)).floor().to(torch.int64)
    chosen = integers(positions.clamp(max=length - 1))
    return AxisMap(length, count, [MapEntry(*each) for each in enumerate(chosen)])


def _linear(
    length: int, count: int, scale: float | None, dtype: torch.dtype, *, corners: bool
) -> AxisMap:
    positions = _positions(length, count, scale, dtype, corners=corners).clamp(min=0)
    first = positions.to(torch.int64).clamp(max=length - 1)
    weight = (positions - first).clamp(0, 1)
    entries = list[MapEntry]()
    near = 1 - weight
    for target, start in enumerate(integers(first)):
        entries.append(MapEntry(target, start, near[target].item()))
        entries.append(MapEntry(target, min(start + 1, length - 1), weight[target].item()))
    return AxisMap(length, count, entries)


def _cubic(
    length: int, count: int, scale: float | None, dtype: torch.dtype, *, corners: bool
) -> AxisMap:
    positions = _positions(length, count, scale, dtype, corners=corners)
    first = positions.floor()
    part = positions - first
    weights = [
        _outer(part + 1),
        _inner(part),
        _inner(1 - part),
        _outer(2 - part),
    ]
    entries = [
        MapEntry(target, min(max(start + place - 1, 0), length - 1), each[target].item())
        for target, start in enumerate(integers(first.to(torch.int64)))
        for place, each in enumerate(weights)
    ]
    return AxisMap(length, count, entries)


def _inner(x: Tensor) -> Tensor:
    return ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1


def _outer(x: Tensor) -> Tensor:
    return ((_CUBIC * x - 5 * _CUBIC) * x + 8 * _CUBIC) * x - 4 * _CUBIC


def _mean(length: int, count: int) -> AxisMap:
    """Means over windows of nearly equal lengths, which share elements where they do not divide the
    axis.
    """
    windows = [
        (number * length // count, -(-(number + 1) * length // count)) for number in range(count)
    ]
    entries = [
        MapEntry(target, source, 1 / (last - first))
        for target, (first, last) in enumerate(windows)
        for source in range(first, last)
    ]
    return AxisMap(length, count, entries)


def _reflected(length: int, before: int, after: int) -> AxisMap:
    numbers = range(-before, length + after)
    chosen = (
        -each if each < 0 else 2 * (length - 1) - each if each >= length else each
        for each in numbers
    )
    return AxisMap(length, len(numbers), [MapEntry(*each) for each in enumerate(chosen)])


def _repeated(length: int, before: int, after: int) -> AxisMap:
    numbers = range(-before, length + after)
    chosen = (min(max(each, 0), length - 1) for each in numbers)
    return AxisMap(length, len(numbers), [MapEntry(*each) for each in enumerate(chosen)])


def _written(name: str, x: Tensor, maps: Sequence[AxisMap], out: Tensor) -> Any:
    is_moved = all(each.is_move for each in maps) and not x.is_complex()
    if not (is_moved or x.is_floating_point()):
        return NotImplemented
    result = resampled(name, x, maps)
    if result is None:
        return NotImplemented
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def _in_type(x: Tensor) -> torch.dtype:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _upsampling(name: str, axes: int, map_of: MapOf | None, given: Sequence[str] = ()) -> None:
    """Register an operator and its gradient. Without `map_of`, the operator has an argument by
    which the corners are aligned; `given` has the map then.
    """

    def maps(
        x: Tensor, lengths: Sequence[int], counts: Sequence[int], arguments: Sequence[Any]
    ) -> list[AxisMap]:
        own, scales = map_of, list(arguments)
        if own is None:
            corners = scales.pop(0)
            own = partial(_linear if given[0] == "linear" else _cubic, corners=corners)
        scales += [None] * (axes - len(scales))
        each = zip(lengths, counts, scales, strict=True)
        return [own(length, count, scale, _in_type(x)) for length, count, scale in each]

    @operator(f"{name}.out", types=None)
    def upsampled(x: Tensor, counts: Sequence[int], *arguments: Any, out: Tensor) -> Any:
        return _written(name, x, maps(x, x.shape[2:], counts, arguments), out)

    @operator(f"{name}_backward.grad_input")
    def gradient(
        grad: Tensor,
        counts: Sequence[int],
        shape: Sequence[int],
        *arguments: Any,
        grad_input: Tensor,
    ) -> Any:
        turned = [each.transposed() for each in maps(grad, shape[2:], counts, arguments)]
        return _written(f"{name}_backward", grad, turned, grad_input)

    del upsampled, gradient


def _padding(name: str, axes: int, map_of: Callable[[int, int, int], AxisMap]) -> None:
    def maps(x: Tensor, padding: Sequence[int]) -> list[AxisMap]:
        # The last axis is the first in `padding`.
        pairs = [(padding[2 * axis], padding[2 * axis + 1]) for axis in reversed(range(axes))]
        lengths = x.shape[-axes:]
        return [map_of(length, *pair) for length, pair in zip(lengths, pairs, strict=True)]

    def padded(x: Tensor, padding: Sequence[int], *, out: Tensor) -> Any:
        return _written(name, x, maps(x, padding), out)

    def functional(x: Tensor, padding: Sequence[int]) -> Any:
        return _written(name, x, maps(x, padding), x.new_empty(0))

    def gradient(grad: Tensor, x: Tensor, padding: Sequence[int], *, grad_input: Tensor) -> Any:
        turned = [each.transposed() for each in maps(x, padding)]
        return _written(f"{name}_backward", grad, turned, grad_input)

    def functional_gradient(grad: Tensor, x: Tensor, padding: Sequence[int]) -> Any:
        return gradient(grad, x, padding, grad_input=x.new_empty(0))

    operator(f"{name}.out", types=None)(padded)
    operator(name, types=None)(functional)
    operator(f"{name}_backward.grad_input")(gradient)
    operator(f"{name}_backward")(functional_gradient)


def _adaptive_mean(axes: int) -> None:
    name = f"_adaptive_avg_pool{axes}d"

    def maps(lengths: Sequence[int], counts: Sequence[int]) -> list[AxisMap]:
        return [_mean(*each) for each in zip(lengths, counts, strict=True)]

    @operator(name)
    def pooled(x: Tensor, counts: Sequence[int]) -> Any:
        return _written(name, x, maps(x.shape[-axes:], counts), x.new_empty(0))

    @operator(f"{name}_backward")
    def gradient(grad: Tensor, x: Tensor) -> Any:
        turned = [each.transposed() for each in maps(x.shape[-axes:], grad.shape[-axes:])]
        return _written(f"{name}_backward", grad, turned, x.new_empty(0))

    del pooled, gradient


for _axes in (1, 2, 3):
    _upsampling(f"upsample_nearest{_axes}d", _axes, partial(_nearest, middle=0.0))
    _upsampling(f"_upsample_nearest_exact{_axes}d", _axes, partial(_nearest, middle=0.5))
    _padding(f"reflection_pad{_axes}d", _axes, _reflected)
    _padding(f"replication_pad{_axes}d", _axes, _repeated)
for _axes, _name in enumerate(("linear1d", "bilinear2d", "trilinear3d"), 1):
    _upsampling(f"upsample_{_name}", _axes, None, ["linear"])
_upsampling("upsample_bicubic2d", 2, None, ["cubic"])
for _axes in (2, 3):
    _adaptive_mean(_axes)
