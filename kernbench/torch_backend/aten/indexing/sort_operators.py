"""Sorting along an axis: one launch, in which each element is compared with all of its row.

Rows whose comparisons are too many are left to the host, which makes fewer of them.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from kernbench.torch_backend.aten.known_results import note_result
from kernbench.torch_backend.aten.operators import operator
from kernbench.torch_backend.launching.launches import launched, pointer_of, window_of
from kernbench.torch_backend.runtime.storages import storages
from runtime.ccl.exchange import chunk_bounds
from runtime.core.requests import PerPe
from runtime.device.kernels import sorting as kernels
from runtime.device.kernels.sorting import WIDEST, SortOrder, SortPiece, SortTensors
from runtime.device.rank.properties import get_device_properties
from runtime.device.regions.regions import Pe

_Sorted = tuple[Tensor, Tensor]
MOST_COMPARED = 1 << 26
"""Comparisons of a launch."""
_LEAST, _HIGHEST = 32, 128
"""Places that a PE finds at once: for a few ones the load of the row takes the time."""


@operator("sort.values_stable")
def _sort(
    x: Tensor,
    *,
    stable: bool | None = None,
    dim: int = -1,
    descending: bool = False,
    values: Tensor,
    indices: Tensor,
) -> Any:
    del stable
    outs = values, indices
    for out in outs:
        if out.shape != x.shape:
            out.resize_(x.shape)
    is_direct = x.dim() > 0 and dim % x.dim() == x.dim() - 1 and x.dtype != torch.bool
    is_direct = is_direct and all(out.is_contiguous() for out in outs)
    ordered = sorted_along(x, dim, descending=descending, outs=outs if is_direct else None)
    if ordered is None:
        return NotImplemented
    if not is_direct:
        for out, each in zip(outs, ordered, strict=True):
            out.copy_(each)
    return outs


def sorted_along(
    x: Tensor, dim: int, *, descending: bool, outs: _Sorted | None = None
) -> _Sorted | None:
    """The elements in their order along an axis, and their numbers; equal ones keep their order,
    NaN counts as greater than all others. None if the host is to sort them. Contiguous `outs` are
    written along the last axis.
    """
    if not x.dim() or not x.numel():
        return x, torch.zeros_like(x, dtype=torch.int64)
    columns = x.shape[dim]
    if x.numel() * columns > MOST_COMPARED:
        return None
    if x.dtype == torch.bool:
        values, numbers = sorted_along(x.to(torch.uint8), dim, descending=descending) or (x, x)
        return values.bool(), numbers
    rows = x.movedim(dim, -1).contiguous()
    places = torch.empty(rows.shape, dtype=torch.int32, device=x.device)
    values, numbers = outs or (torch.empty_like(rows), torch.empty_like(rows, dtype=torch.int64))
    is_float = x.is_floating_point()
    least = -torch.inf if is_float else torch.iinfo(x.dtype).min
    order = SortOrder(columns, descending, is_float, least)
    windows = [window_of(each) for each in (rows, places, values, numbers)]
    pieces = dealt_pieces(x.numel() // columns, columns)
    arguments = (PerPe(pieces), order, SortTensors(*map(pointer_of, windows)))
    launched("sort", kernels.sorted_rows, arguments, windows, list(pieces))
    for number, each in enumerate((values, numbers)):
        note_result(each, rows, partial(_sorted_on_host, descending=descending, number=number))
    return values.movedim(-1, dim), numbers.movedim(-1, dim)


def _sorted_on_host(rows: Tensor, *, descending: bool, number: int) -> Tensor:
    return rows.sort(dim=-1, stable=True, descending=descending)[number]


def dealt_pieces(rows: int, columns: int) -> dict[Pe, tuple[SortPiece, ...]]:
    """Equal pieces for each PE: several short rows, or a part of a long one."""
    properties = get_device_properties()
    own = -(-rows * columns // properties.pe_count)
    width = min(columns, max(own, _LEAST), _HIGHEST)
    height = max(1, min(own // columns, WIDEST // columns))
    cells = [
        SortPiece(row, min(height, rows - row), first, min(first + width, columns))
        for row in range(0, rows, height)
        for first in range(0, columns, width)
    ]
    pes = min(properties.pe_count, len(cells))
    return {
        storages().state.pes.at(number): tuple(cells[first:last])
        for number, (first, last) in enumerate(chunk_bounds(len(cells), pes))
    }
