"""Reductions. Along the last axes, and along the first ones, floating-point elements are reduced by
kernels on whole rows; all others by the low level, whose PEs have partial results which one PE
combines.
"""

from collections.abc import Callable, Sequence
from math import gcd, prod
from typing import Any

import torch

from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.launches import window_of
from kernbench.torch_backend.launching.rowwise_launch import (
    column,
    launch_rowwise,
    matrix,
    sum_of_rows,
)
from kernbench.torch_backend.runtime.element_types import FLOATS, hardware_type
from runtime.device.kernels.rowwise import RowChain
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.operations import reductions
from runtime.language import tl
from runtime.language.value import Value

Axes = int | Sequence[int] | None
_SUMS = frozenset({reductions.sum, reductions.mean})
_WIDEST, _NARROWEST = 1024, 64
"""The rows in which all elements are summed: the greatest power of 2 that divides their number."""


_OF_ROWS: dict[Callable[..., DeviceTensor], Callable[[Value, int], Value]] = {
    reductions.sum: lambda x, _: tl.sum(x, 1, keep_dims=True),
    reductions.mean: lambda x, columns: tl.sum(x, 1, keep_dims=True) * (1 / columns),
    reductions.amax: lambda x, _: tl.max(x, 1, keep_dims=True),
    reductions.amin: lambda x, _: tl.min(x, 1, keep_dims=True),
}


def reduce_to(
    out: torch.Tensor,
    function: Callable[..., DeviceTensor],
    x: torch.Tensor,
    dim: Axes,
    *,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Write a reduction of the low level to `out`, which is resized."""
    if _reduced_by_rows(out, function, x, dim, keepdim=keepdim):
        return out
    source = window_of(x.contiguous()).window.view(tuple(x.shape))
    axes = None if dim is None or dim == [] else dim
    options: dict[str, Any] = {} if dtype is None else {"dtype": hardware_type(dtype)}
    result = function(source, axes, keepdim, **options)
    if tuple(out.shape) != result.shape:
        out.resize_(result.shape)
    if not out.numel():
        return out
    if not out.is_contiguous():
        return out.copy_(reduce_to(torch.empty_like(out), function, x, dim, keepdim=keepdim))
    window_of(out).window.copy_(result.view(-1))
    return out


@operator("sum.IntList_out")
def _sum(
    x: torch.Tensor,
    dim: Axes,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: torch.Tensor,
) -> torch.Tensor:
    return reduce_to(out, reductions.sum, x, dim, keepdim=keepdim, dtype=dtype or out.dtype)


@operator("mean.out")
def _mean(
    x: torch.Tensor,
    dim: Axes,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: torch.Tensor,
) -> torch.Tensor:
    return reduce_to(out, reductions.mean, x, dim, keepdim=keepdim, dtype=dtype or out.dtype)


def _extreme(name: str, function: Callable[..., DeviceTensor]) -> None:
    @operator(f"{name}.out")
    def along(
        x: torch.Tensor, dim: Axes = (), keepdim: bool = False, *, out: torch.Tensor
    ) -> torch.Tensor:
        return reduce_to(
            out, function, x, list(dim) if isinstance(dim, Sequence) else dim, keepdim=keepdim
        )

    @operator(name.removeprefix("a"))
    def of_all(x: torch.Tensor) -> torch.Tensor:
        return reduce_to(torch.empty((), dtype=x.dtype, device=x.device), function, x, None)

    del along, of_all


_extreme("amax", reductions.amax)
_extreme("amin", reductions.amin)


def _truth(name: str, function: Callable[..., DeviceTensor]) -> None:
    @operator(f"{name}.out", f"{name}.dims_out")
    def along(
        x: torch.Tensor, dim: Axes = None, keepdim: bool = False, *, out: torch.Tensor
    ) -> torch.Tensor:
        return reduce_to(out, function, x, dim, keepdim=keepdim)

    @operator(f"{name}.all_out")
    def of_all(x: torch.Tensor, *, out: torch.Tensor) -> torch.Tensor:
        return reduce_to(out, function, x, None)

    del along, of_all


_truth("any", reductions.any)
_truth("all", reductions.all)


@operator("linalg_vector_norm.out", types=FLOATS)
def _norm(
    x: torch.Tensor,
    order: float = 2,
    dim: Axes = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
    out: torch.Tensor,
) -> torch.Tensor:
    axes = [dim] if isinstance(dim, int) else list(range(x.dim()) if dim is None else dim)
    wide = x.to(dtype or (x.dtype if x.dtype == torch.float64 else torch.float32))
    if order == 2:
        return out.copy_(wide.square().sum(axes, keepdim=keepdim).sqrt())
    if order == 1:
        return out.copy_(wide.abs().sum(axes, keepdim=keepdim))
    if order == float("inf"):
        return out.copy_(wide.abs().amax(axes, keepdim=keepdim))
    return NotImplemented


def _reduced_by_rows(
    out: torch.Tensor,
    function: Callable[..., DeviceTensor],
    x: torch.Tensor,
    dim: Axes,
    *,
    keepdim: bool,
) -> bool:
    """Reduce the last or the first axes, if that is what is reduced; False if not."""
    if function not in _OF_ROWS or not (x.is_floating_point() and out.is_floating_point()):
        return False
    given = [dim] if isinstance(dim, int) else list(dim or ())
    axes = sorted({axis % x.dim() for axis in given}) if x.dim() else []
    if not axes or len(axes) == x.dim() or not x.numel():
        return x.numel() > 0 and _reduced_to_number(out, function, x, keepdim=keepdim)
    kept = [axis for axis in range(x.dim()) if axis not in axes]
    shape = [1 if axis in axes else length for axis, length in enumerate(x.shape)]
    out.resize_(shape if keepdim else [x.shape[axis] for axis in kept])
    if not out.is_contiguous():
        return False
    inner = prod(x.shape[axis] for axis in axes)
    rows = x.numel() // inner
    if axes[0] > kept[-1]:
        compute, name = _OF_ROWS[function], function.__name__

        def of_rows(values: Value) -> Value:
            return compute(values, inner)

        chain = RowChain(of_rows, ("x",), columns=("out",))
        inputs, outs = {"x": matrix(x)}, {"out": column(out)}
        return launch_rowwise(name, [chain], (rows, inner), inputs, outs)
    if axes[-1] < kept[0] and function in _SUMS:
        sum_of_rows(out, x.contiguous(), (inner, rows), _scale(function, inner))
        return True
    return False


def _reduced_to_number(
    out: torch.Tensor, function: Callable[..., DeviceTensor], x: torch.Tensor, *, keepdim: bool
) -> bool:
    """The sum or the mean of all elements, as the sum of rows; False for elements of which a row
    would be short.
    """
    width = gcd(x.numel(), _WIDEST)
    if function not in _SUMS or width < _NARROWEST:
        return False
    out.resize_([1] * x.dim() if keepdim else [])
    scale = _scale(function, x.numel())
    sum_of_rows(out, x.contiguous(), (x.numel() // width, width), scale)
    return True


def _scale(function: Callable[..., DeviceTensor], count: int) -> float:
    """The factor of a sum of as many elements."""
    return 1 / count if function is reductions.mean else 1
