"""Operators with a list of indices: rows of a table, and sums of rows."""

from collections.abc import Sequence
from math import prod

import torch

from kernbench.torch_backend.kernels import rows as kernels
from kernbench.torch_backend.launches import (
    launched,
    longest_kept,
    most_elements,
    pointer_of,
    window_of,
)
from kernbench.torch_backend.operators import DEVICE, operator
from kernbench.torch_backend.partition import Pe
from runtime.ccl.exchange import chunk_bounds
from runtime.core.requests import PerPe
from runtime.torch.distributed.movers import spread


@operator("index_select", types=None)
def _index_select(x: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
    if not x.dim() or index.dtype not in {torch.int32, torch.int64} or x.is_complex():
        return NotImplemented
    table = x.movedim(dim, 0).contiguous()
    out = torch.empty((index.numel(), *table.shape[1:]), dtype=x.dtype, device=x.device)
    select_rows(out, table, index.contiguous())
    return out.movedim(0, dim)


def select_rows(out: torch.Tensor, table: torch.Tensor, index: torch.Tensor) -> None:
    """Write the rows of `table` that `index` names to `out`; equal numbers of rows for each PE."""
    if not out.numel():
        return
    if not table.numel():
        raise IndexError("index out of range in self")
    columns = prod(table.shape[1:])
    windows = [window_of(each) for each in (index, table, out)]
    parts = _dealt(out.shape[0], columns * out.itemsize)
    arguments = (PerPe(parts), columns, most_elements(out.itemsize + index.itemsize))
    launched(
        "index_select",
        kernels.select_rows,
        (*arguments, *map(pointer_of, windows)),
        windows,
        list(parts),
    )


@operator("embedding_dense_backward", types=None)
def _embedding_backward(
    grad: torch.Tensor,
    indices: torch.Tensor,
    count: int,
    padding: int,
    by_frequency: bool,
) -> torch.Tensor:
    if by_frequency or grad.dtype not in {torch.float32, torch.float16, torch.bfloat16}:
        return NotImplemented
    columns = grad.shape[-1]
    out = torch.zeros((count, columns), dtype=grad.dtype, device=DEVICE)
    # The host reads the numbers of the rows, and deals the rows that have a sum.
    rows: dict[int, list[int]] = {}
    for position, row in enumerate(indices.flatten().tolist()):
        if row != padding:
            rows.setdefault(row, []).append(position)
    sum_rows(out, grad.contiguous(), sorted(rows.items()))
    return out


def sum_rows(
    out: torch.Tensor, source: torch.Tensor, sums: Sequence[tuple[int, Sequence[int]]]
) -> None:
    """Write to each row of `out` in `sums` the sum of rows of `source`; equal numbers of sums for
    each PE.
    """
    if not sums:
        return
    columns = out.shape[-1]
    parts = {
        pe: tuple(sums[start:stop])
        for pe, (start, stop) in _dealt(len(sums), columns * source.itemsize).items()
    }
    windows = [window_of(each) for each in (source, out)]
    arguments = (PerPe(parts), columns, most_elements(4), longest_kept(1))
    launched(
        "embedding_dense_backward",
        kernels.sum_rows,
        (*arguments, *map(pointer_of, windows)),
        windows,
        list(parts),
    )


def _dealt(rows: int, row_bytes: int) -> dict[Pe, tuple[int, int]]:
    """The [first, last) rows of each PE."""
    movers = spread(rows * row_bytes, 1)[:rows]
    return {
        (spec.cube, spec.pe): (start, stop)
        for spec, (start, stop) in zip(movers, chunk_bounds(rows, len(movers)), strict=True)
        if start < stop
    }
