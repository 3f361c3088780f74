"""Operators that place elements in rows at given columns: one launch, in which each column of the
result is compared with those that are given for its row.

A few elements for wide rows are written, or added, as rows of one element. With too many
comparisons, sums are those of `index_add` where all rows have the same columns, as an expanded
vector has them; other calls are left to the host.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.indexing.index_operators import (
    SUMMED,
    element_numbers,
    put_rows,
)
from kernbench.torch_backend.aten.indexing.sort_operators import MOST_COMPARED, dealt_pieces
from kernbench.torch_backend.aten.operators import complex_operator, operator
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.element_types import computed_in, hardware_type
from kernbench.torch_backend.runtime.storages import storages
from runtime.core.requests import PerPe
from runtime.device.kernels import placing as kernels
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.placing import How, PlacedRows, Placing
from runtime.language.value import Pointer

_WIDE = 1024
"""Columns for each given element of a row from which comparisons take longer than writes by number,
which wait for the host to read the index.
"""
_REDUCTIONS: dict[str, How] = {
    "sum": "sum",
    "mean": "sum",
    "prod": "product",
    "amax": "max",
    "amin": "min",
}


def _scatter(name: str, how: How) -> None:
    @operator(name)
    def placed(x: Tensor, dim: int, index: Tensor, given: Any, *, out: Tensor) -> Any:
        return _placed(name, how, x, (dim, index, given), out)

    @complex_operator(name)
    def placed_parts(x: Tensor, dim: int, index: Tensor, given: Any, *, out: Tensor) -> Any:
        if not x.dim():
            return NotImplemented
        targets = torch.view_as_real(out.resize_(x.shape))
        for number, part in enumerate(("real", "imag")):
            own = torch.view_as_real(given)[..., number] if isinstance(given, Tensor) else None
            value = getattr(complex(given), part) if own is None else own
            before = torch.view_as_real(x)[..., number]
            result = placed(before, dim, index, value, out=torch.empty_like(before))
            if result is NotImplemented:
                return NotImplemented
            targets[..., number].copy_(result)
        return out

    del placed_parts


def _placed(
    name: str, how: How, x: Tensor, given: tuple[int, Tensor, Tensor | float], out: Tensor
) -> Any:
    """Combine elements, or a number, with those of `x` along an axis that an index names."""
    dim, index, source = given
    if out.shape != x.shape:
        out.resize_(x.shape)
    if not index.numel():
        # Of any number of axes.
        return out if out.data_ptr() == x.data_ptr() else out.copy_(x)
    if not x.dim() or not index.dim():
        return NotImplemented
    lengths = index.shape
    if isinstance(source, Tensor):
        source = source[tuple(slice(length) for length in lengths)]
    is_summed = how == "sum" and x.dtype in SUMMED
    if x.shape[dim] >= _WIDE * lengths[dim] and (is_summed or how == "last"):
        return _put(name, x, given, out, accumulate=is_summed)
    if prod(lengths) * x.shape[dim] > MOST_COMPARED:
        return (
            _added_rows(x, dim, index, source, out)
            if is_summed and isinstance(source, Tensor) and _is_of_rows(index, dim)
            else NotImplemented
        )
    if x.dtype == torch.bool:
        # In bytes, 256 true elements would have the sum 0.
        numbers = source.to(torch.int32) if isinstance(source, Tensor) else int(bool(source))
        whole = torch.empty_like(x, dtype=torch.int32)
        mask = _placed(name, how, x.to(torch.int32), (dim, index, numbers), whole)
        return mask if mask is NotImplemented else out.copy_(whole != 0)
    within = _within(index, dim)
    rows, columns = (each.movedim(dim, -1).contiguous() for each in (x[within], index))
    elements = source.movedim(dim, -1).contiguous() if isinstance(source, Tensor) else source
    result = torch.empty_like(rows)
    _launch(name, how, (rows, columns, elements), result)
    if rows.shape != x.movedim(dim, -1).shape and out.data_ptr() != x.data_ptr():
        out.copy_(x)
    out[within].copy_(result.movedim(-1, dim))
    return out


def _put(
    name: str,
    x: Tensor,
    given: tuple[int, Tensor, Tensor | float],
    out: Tensor,
    *,
    accumulate: bool,
) -> Tensor:
    """Write or add each given element as a row of one element, whose number the host reads."""
    dim, index, source = given
    if out.data_ptr() != x.data_ptr():
        out.copy_(x)
    table = out.contiguous()
    if not isinstance(source, Tensor):
        source = torch.full(index.shape, source, dtype=x.dtype, device=x.device)
    elements = source[tuple(map(slice, index.shape))].contiguous().view(-1, 1)
    numbers = element_numbers(name, table, dim, index)
    put_rows(table.view(-1, 1), elements, numbers, accumulate=accumulate)
    return out if table.data_ptr() == out.data_ptr() else out.copy_(table)


def _launch(
    name: str, how: How, given: tuple[Tensor, Tensor, Tensor | float], result: Tensor
) -> None:
    rows, columns, elements = given
    # The engine sums bytes in 32 bits.
    wide = computed_in(rows.dtype) if rows.itemsize > 1 else torch.int32
    bounds = IndexBounds(rows.shape[-1], f"rows of {rows.shape[-1]:,} elements")
    placing = Placing(
        columns=rows.shape[-1],
        bounds=storages().reported(bounds),
        given=columns.shape[-1],
        how=how,
        wide=hardware_type(wide),
        least=-torch.inf if wide.is_floating_point else torch.iinfo(wide).min,
    )
    windows = [window_of(each) for each in (rows, columns, result)]
    start, numbers, out = map(pointer_of, windows)
    placed: Pointer | float
    if isinstance(elements, Tensor):
        windows.append(window_of(elements))
        placed = pointer_of(windows[-1])
    else:
        placed = elements
    tensors = PlacedRows(start, numbers, placed, out)
    pieces = dealt_pieces(rows.numel() // rows.shape[-1], rows.shape[-1])
    launched(name, kernels.placed_rows, (PerPe(pieces), placing, tensors), windows, list(pieces))


def expanded_along(index: Tensor, shape: Sequence[int], dim: int) -> Tensor:
    """A vector of indices along an axis, for all elements of a shape."""
    lengths = [index.numel() if axis == dim % len(shape) else 1 for axis in range(len(shape))]
    return index.to(torch.int64).view(lengths).expand(tuple(shape))


def _within(index: Tensor, dim: int) -> tuple[slice, ...]:
    """The part of a tensor which an index of less rows reaches."""
    return tuple(
        slice(None) if axis == dim % index.dim() else slice(length)
        for axis, length in enumerate(index.shape)
    )


def _is_of_rows(index: Tensor, dim: int) -> bool:
    """Whether an index of several rows is a vector that is expanded."""
    others = [axis for axis in range(index.dim()) if axis != dim % index.dim()]
    rows = prod(index.shape[axis] for axis in others)
    return rows > 1 and all(index.stride(axis) == 0 for axis in others if index.shape[axis] > 1)


def _added_rows(x: Tensor, dim: int, index: Tensor, source: Tensor, out: Tensor) -> Tensor:
    if out.data_ptr() != x.data_ptr():
        out.copy_(x)
    vector = index.movedim(dim, -1)
    while vector.dim() > 1:
        vector = vector[0]
    out[_within(index, dim)].index_add_(dim, vector, source)
    return out


@operator("scatter_reduce.two_out")
def _reduced(
    x: Tensor,
    dim: int,
    index: Tensor,
    source: Tensor,
    reduce: str,
    *,
    include_self: bool = True,
    out: Tensor,
) -> Any:
    if not (x.dim() and index.dim()) or (x.dtype == torch.bool and reduce == "mean"):
        return NotImplemented
    if x.dtype == torch.bool:
        # Sums of bools are their greatest ones, products the least.
        how = {"sum": "amax", "prod": "amin"}.get(reduce, reduce)
        start, given = x.to(torch.uint8), source.to(torch.uint8)
        mask = start.scatter_reduce(dim, index, given, how, include_self=include_self)
        return out.resize_(x.shape).copy_(mask != 0)
    how = _REDUCTIONS[reduce]
    start = x if include_self else torch.full_like(x, _neutral(how, x.dtype))
    result = _placed("scatter_reduce", how, start, (dim, index, source), torch.empty_like(start))
    is_mean = reduce == "mean"
    if result is NotImplemented or (include_self and not is_mean):
        return result if result is NotImplemented else out.copy_(result)
    zeros = torch.zeros(x.shape, dtype=torch.int32, device=x.device)
    counts = zeros.scatter_add(dim, index, torch.ones_like(index, dtype=torch.int32))
    if is_mean:
        rounding = None if x.is_floating_point() else "floor"
        divisors = (counts + include_self).clamp(min=1).to(x.dtype)
        result = torch.div(result, divisors, rounding_mode=rounding)
    return out.copy_(result if include_self else torch.where(counts > 0, result, x))


def _neutral(how: How, dtype: torch.dtype) -> float:
    if how in {"sum", "product"}:
        return how == "product"
    if dtype.is_floating_point:
        return -torch.inf if how == "max" else torch.inf
    limits = torch.iinfo(dtype)
    return limits.min if how == "max" else limits.max


_scatter("scatter.src_out", "last")
_scatter("scatter.value_out", "last")
_scatter("scatter_add.out", "sum")
