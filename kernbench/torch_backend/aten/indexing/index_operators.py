"""Operators with a list of indices: rows of a table, sums of rows, whole slices of an axis."""

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from kernbench.torch_backend.aten.elements.pointwise_operators import compare_indices, compute
from kernbench.torch_backend.aten.indexing.mask_operators import MOST_MASKED, place_under
from kernbench.torch_backend.aten.known_results import note_result
from kernbench.torch_backend.aten.operators import DEVICE, operator
from kernbench.torch_backend.launching.launches import (
    launched,
    longest_kept,
    most_elements,
    pointer_of,
    window_of,
)
from kernbench.torch_backend.runtime.element_types import COMPUTED, moved_as
from kernbench.torch_backend.runtime.pytorch_api import broadcast_tensors, integers
from kernbench.torch_backend.runtime.storages import storages
from runtime.ccl.exchange import chunk_bounds
from runtime.core.requests import PerPe
from runtime.device.kernels import rows as kernels
from runtime.device.kernels.bounds import IndexBounds
from runtime.device.movers.movers import spread
from runtime.device.regions.regions import Pe
from runtime.language import tl

_T = TypeVar("_T")
_INDEX_BYTES = 1 << 15
"""Scratch for indices, and for the alignment of values."""
SUMMED = frozenset({torch.float32, torch.float16, torch.bfloat16})
"""The types whose rows are summed, in float32."""


@operator("index_select", types=None)
def _index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    if not x.dim() or index.dtype not in {torch.int32, torch.int64} or x.is_complex():
        return NotImplemented
    table = x.movedim(dim, 0).contiguous()
    out = torch.empty((index.numel(), *table.shape[1:]), dtype=x.dtype, device=x.device)
    select_rows(out, table, index.contiguous())
    return out.movedim(0, dim)


def select_rows(out: Tensor, table: Tensor, index: Tensor) -> None:
    """Write the rows of `table` that `index` names to `out`, which has those of each element of
    `index`, in any shape; equal numbers of rows for each PE.
    """
    if not out.numel():
        return
    if not table.numel():
        raise IndexError("index out of range in self")
    columns = prod(table.shape[1:])
    windows = [window_of(each, moved_as(each.dtype)) for each in (index, table, out)]
    parts = _dealt(index.numel(), columns * out.itemsize)
    bounds = IndexBounds(table.shape[0], f"a table of {table.shape[0]:,} rows")
    bounds = storages().bounded(bounds, index, "index_select")
    arguments = (PerPe(parts), columns, most_elements(out.itemsize, beside=_INDEX_BYTES), bounds)
    launched(
        "index_select",
        kernels.select_rows,
        (*arguments, *map(pointer_of, windows)),
        windows,
        list(parts),
    )


@operator("index.Tensor", types=None)
def _index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    if (mask := _whole_mask(x, indices)) is not None:
        return x.masked_select(mask)
    indexed = _IndexedRows.of(x, indices)
    if indexed is None:
        return NotImplemented
    out = torch.empty((*indexed.shape, *indexed.table.shape[1:]), dtype=x.dtype, device=x.device)
    select_rows(out, indexed.table.contiguous(), indexed.rows)
    return indexed.in_place(out)


@operator("gather.out", types=None)
def _gather(
    x: Tensor, dim: int, index: Tensor, sparse_grad: bool = False, *, out: Tensor
) -> Tensor:
    del sparse_grad
    if not (x.dim() and index.dim()):
        return NotImplemented
    if out.shape != index.shape:
        out.resize_(index.shape)
    if not index.numel():
        # Of any number of axes.
        return out
    if moved_as(x.dtype) is None:
        # Complex numbers of 16 bytes, as pairs of real ones.
        parts = (torch.view_as_real(each).unbind(-1) for each in (x, out))
        for part, target in zip(*parts, strict=True):
            target.copy_(part.gather(dim, index))
        return out
    numbers = element_numbers("gather", x, dim, index)
    span = 1 + sum((length - 1) * by for length, by in zip(x.shape, x.stride(), strict=True))
    result = out if out.is_contiguous() else torch.empty_like(out)
    select_rows(result.view(-1, 1), x.as_strided((span, 1), (1, 1)), numbers)
    return out if result is out else out.copy_(result)


def element_numbers(name: str, x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The numbers in memory of the elements of `x` which an index names along an axis: a vector."""
    index = index.to(torch.int64)
    numbers = compute(
        name,
        tl.mul,
        (index, x.stride(dim)),
        torch.empty_like(index, memory_format=torch.contiguous_format),
        bounds=IndexBounds.of_axis(x.shape, dim),
    )
    note_result(numbers, index, lambda elements: elements * x.stride(dim))
    for axis, length in enumerate(index.shape):
        if axis != dim % x.dim() and length > 1:
            shape = [length if each == axis else 1 for each in range(x.dim())]
            numbers = numbers + (torch.arange(length, device=x.device) * x.stride(axis)).view(shape)
    return numbers.view(-1)


@operator("_index_put_impl_", types=None)
def _index_put(
    x: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:
    del unsafe
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype == torch.bool and values.numel() == 1 and not accumulate:
        mask = mask.view(*mask.shape, *[1] * (x.dim() - mask.dim()))
        return x.copy_(torch.where(mask, values.to(x.device).view(()), x))
    whole = _whole_mask(x, indices)
    if whole is not None and values.dim() == 1 and values.dtype == x.dtype != torch.bool:
        if not accumulate:
            return place_under(x, whole, values, takes_all=True)
        return x.add_(place_under(torch.zeros_like(x), whole, values, takes_all=True))
    indexed = _IndexedRows.of(x, indices)
    if indexed is None or (accumulate and x.dtype == torch.bool):
        return NotImplemented
    shape = (*indexed.shape, *indexed.table.shape[1:])
    source = indexed.in_front(values.to(x.device), shape).contiguous()
    table = indexed.table if indexed.table.is_contiguous() else indexed.table.contiguous()
    if accumulate and x.dtype not in SUMMED:
        table.index_add_(0, indexed.rows, source.view(-1, *table.shape[1:]))
    else:
        put_rows(table, source, indexed.rows, accumulate=accumulate)
    if table.data_ptr() != x.data_ptr():
        x.copy_(indexed.whole(table))
    return x


def _whole_mask(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor | None:
    """The mask, if the only index is one of all elements."""
    mask = indices[0] if len(indices) == 1 and x.dtype in COMPUTED else None
    if mask is None or mask.dtype != torch.bool or mask.shape != x.shape:
        return None
    if mask.numel() > MOST_MASKED:
        return None
    return mask.to(x.device)


@operator("index_add.out", types=None)
def _index_add(
    x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1, out: Tensor
) -> Tensor:
    if not x.dim():
        return NotImplemented
    if x.dtype not in SUMMED:
        shape = [index.numel() if axis == dim % x.dim() else 1 for axis in range(x.dim())]
        columns = index.to(torch.int64).view(shape).expand(source.shape)
        factor = bool(alpha) if x.dtype == torch.bool else alpha
        return torch.scatter_add(x, dim, columns, source * factor, out=out)
    if out.data_ptr() != x.data_ptr():
        out.resize_(x.shape).copy_(x)
    table = out.movedim(dim, 0).contiguous()
    rows = source.movedim(dim, 0).contiguous()
    put_rows(table, rows if alpha == 1 else rows * alpha, index, accumulate=True)
    return out if table.data_ptr() == out.data_ptr() else out.copy_(table.movedim(0, dim))


class _IndexedRows(NamedTuple):
    """The axes that are indexed, in front of all others, as rows of a table; `rows` are the numbers
    of those that an index of `shape` names. In the result its axes begin at `place`.
    """

    table: Tensor
    rows: Tensor
    shape: torch.Size
    place: int
    lengths: tuple[int, ...]
    order: tuple[int, ...]

    @classmethod
    def of(cls, x: Tensor, indices: Sequence[Tensor | None]) -> "_IndexedRows | None":
        """None for types that no DMA moves."""
        if x.is_complex():
            return None
        expanded: list[Tensor | None] = []
        for each in indices:
            if each is not None and each.dtype in {torch.bool, torch.uint8}:
                # How many elements a mask has, only the host can find out.
                expanded += each.nonzero().unbind(1)
            else:
                expanded.append(each)
        axes = [axis for axis, each in enumerate(expanded) if each is not None]
        used = broadcast_tensors(*(each for each in expanded if each is not None))
        others = [axis for axis in range(x.dim()) if axis not in axes]
        lengths = [x.shape[axis] for axis in axes]
        rows = torch.zeros(used[0].shape, dtype=torch.int64, device=x.device)
        for each, axis in zip(used, axes, strict=True):
            length, number = x.shape[axis], each.to(x.device, torch.int64)
            bounds = IndexBounds.of_axis(x.shape, axis, counts_from_end=True)
            is_negative = compare_indices("lt", number, 0, bounds)
            rows = rows * length + torch.where(is_negative, number + length, number)
        order = (*axes, *others)
        table = x.permute(order)
        table = table.reshape(prod(lengths), *table.shape[len(axes) :])
        is_one_run = axes == list(range(axes[0], axes[-1] + 1))
        return cls(
            table=table,
            rows=rows.reshape(-1),
            shape=rows.shape,
            place=axes[0] if is_one_run else 0,
            lengths=tuple(lengths),
            order=order,
        )

    def in_place(self, out: Tensor) -> Tensor:
        """A result with the axes of the index in front, in the order of PyTorch."""
        count = len(self.shape)
        return out.movedim(tuple(range(count)), tuple(range(self.place, self.place + count)))

    def in_front(self, values: Tensor, shape: tuple[int, ...]) -> Tensor:
        """Values for a result, in the order of a table of `shape`."""
        count = len(self.shape)
        placed = (*shape[count : count + self.place], *self.shape, *shape[count + self.place :])
        values = values.expand(placed)
        return values.movedim(tuple(range(self.place, self.place + count)), tuple(range(count)))

    def whole(self, table: Tensor) -> Tensor:
        """The table in the shape of the tensor."""
        moved = table.view(*self.lengths, *table.shape[1:])
        return moved.permute([self.order.index(axis) for axis in range(len(self.order))])


def put_rows(table: Tensor, source: Tensor, index: Tensor, *, accumulate: bool) -> None:
    """Write or add the rows of `source` to those of `table` that `index` names."""
    if not source.numel():
        return
    columns = prod(table.shape[1:])
    # The addresses that a kernel stores to are fixed when it begins: the host reads the numbers.
    rows = positions_of(index, table.shape[0])
    if accumulate:
        sum_rows(table.view(-1, columns), source.view(-1, columns), sorted(rows.items()), adds=True)
        return
    pairs = sorted((target, positions[-1]) for target, positions in rows.items())
    parts = _of_pes(pairs, columns * source.itemsize)
    windows = [window_of(each, moved_as(each.dtype)) for each in (source, table)]
    arguments = (PerPe(parts), columns, most_elements(2 * source.itemsize))
    launched(
        "index_put_",
        kernels.store_rows,
        (*arguments, *map(pointer_of, windows)),
        windows,
        list(parts),
    )


def positions_of(index: Tensor, rows: int) -> dict[int, list[int]]:
    """The positions of each number, which counts `rows`; `IndexError` for another one."""
    positions: dict[int, list[int]] = {}
    for position, number in enumerate(integers(index.flatten())):
        if not 0 <= number < rows:
            raise IndexError(f"index {number} is out of bounds for a table of {rows:,} rows")
        positions.setdefault(number, []).append(position)
    return positions


@operator("embedding_dense_backward", types=None)
def _embedding_backward(
    grad: Tensor, indices: Tensor, count: int, padding: int, by_frequency: bool
) -> Tensor:
    if by_frequency or grad.dtype not in SUMMED:
        return NotImplemented
    columns = grad.shape[-1]
    out = torch.zeros((count, columns), dtype=grad.dtype, device=DEVICE)
    rows = positions_of(indices, count)
    rows.pop(padding, None)
    sum_rows(out, grad.contiguous(), sorted(rows.items()))
    return out


def sum_rows(
    out: Tensor, source: Tensor, sums: Sequence[tuple[int, Sequence[int]]], *, adds: bool = False
) -> None:
    """Write to each row of `out` in `sums` the sum of rows of `source`, or add it; about equal
    numbers of rows for each PE.
    """
    if not sums:
        return
    columns = out.shape[-1]
    parts = _by_rows(sums, columns * source.itemsize)
    windows = [window_of(each) for each in (source, out)]
    arguments = (PerPe(parts), columns, most_elements(4), longest_kept(1), adds)
    launched(
        "sum_rows", kernels.sum_rows, (*arguments, *map(pointer_of, windows)), windows, list(parts)
    )


def _by_rows(
    sums: Sequence[tuple[int, Sequence[int]]], row_bytes: int
) -> dict[Pe, tuple[tuple[int, Sequence[int]], ...]]:
    """The sums of each PE, in their order: of about as many rows that are read and written."""
    pes = list(_dealt(len(sums), row_bytes))
    moved = list(accumulate(1 + len(rows) for _, rows in sums))
    dealt: dict[Pe, list[tuple[int, Sequence[int]]]] = {}
    for each, end in zip(sums, moved, strict=True):
        dealt.setdefault(pes[(end - 1) * len(pes) // moved[-1]], []).append(each)
    return {pe: tuple(each) for pe, each in dealt.items()}


def _of_pes(items: Sequence[_T], row_bytes: int) -> dict[Pe, tuple[_T, ...]]:
    """Equal numbers of items for each PE, each of which moves a row."""
    dealt = _dealt(len(items), row_bytes)
    return {pe: tuple(items[start:stop]) for pe, (start, stop) in dealt.items()}


def _dealt(rows: int, row_bytes: int) -> dict[Pe, tuple[int, int]]:
    """The [first, last) rows of each PE."""
    movers = spread(rows * row_bytes, 1)[:rows]
    return {
        (spec.cube, spec.pe): (start, stop)
        for spec, (start, stop) in zip(movers, chunk_bounds(rows, len(movers)), strict=True)
        if start < stop
    }


@operator("index_copy.out", types=None)
def _index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor) -> Any:
    if not x.dim() or x.is_complex():
        return NotImplemented
    if out.data_ptr() != x.data_ptr():
        out.resize_(x.shape).copy_(x)
    out.movedim(dim, 0).index_put_((index,), source.movedim(dim, 0))
    return out


@operator("index_fill_.int_Scalar", types=None)
def _index_fill(x: Tensor, dim: int, index: Tensor, value: float) -> Any:
    if not x.dim() or x.is_complex():
        return NotImplemented
    x.movedim(dim, 0).index_put_((index,), torch.full((), value, dtype=x.dtype, device=x.device))
    return x
