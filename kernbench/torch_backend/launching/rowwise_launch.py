"""Launches of operators on whole rows: equal numbers of rows for each PE.

The rows are dealt over as many PEs as hold the matrix, in the order of memory, so that a PE has
the rows of its own slice where the shares of the storage are whole rows.
"""

from collections.abc import Sequence

import torch

from kernbench.torch_backend.launching.launches import (
    launched,
    longest_kept,
    most_elements,
    pointer_of,
    window_of,
)
from kernbench.torch_backend.runtime.element_types import hardware_type
from runtime.ccl.exchange import chunk_bounds
from runtime.core.requests import PerPe
from runtime.device.kernels import rowwise as kernels
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.movers.movers import spread
from runtime.device.rank.properties import get_device_properties
from runtime.device.regions.regions import Pe

_BLOCKS = 6
"""The blocks of a PE: one is computed while others are loaded and stored."""
_ROW_BLOCKS = 4
"""The blocks of a PE that sums rows."""
_LEAST_COLUMNS = 128
"""Columns of partial sums that a PE adds: fewer are loaded in bursts of a few bytes."""
Formed = tuple[torch.Tensor, kernels.Form]
"""A contiguous tensor, with its form: matrix, row or column."""


def launch_rowwise(
    name: str,
    function: kernels.RowFunction | kernels.Function,
    shape: tuple[int, int],
    inputs: Sequence[Formed],
    outs: Sequence[Formed],
) -> bool:
    """Compute `function` of rows; False if a row does not fit the scratch of a PE."""
    rows, columns = shape
    if not rows or not columns:
        return False
    chains = (
        function if isinstance(function, kernels.RowFunction) else kernels.RowFunction((function,))
    )
    # The chains compute in float32 or float64.
    wide = torch.float64 if inputs[0][0].dtype == torch.float64 else torch.float32
    given = [*inputs, *outs]
    windows = [window_of(each) for each, _ in given]
    parts = dealt_rows(rows, windows[0].window)
    most_rows = max(last - first for first, last in parts.values())
    blocks = _blocks(given, chains, wide, most_rows, columns)
    if blocks is None:
        return False
    operands = [
        kernels.RowOperand(pointer_of(window), form)
        for window, (_, form) in zip(windows, given, strict=True)
    ]
    own = {
        pe: tuple([each.from_row(first, columns) for each in operands])
        for pe, (first, _) in parts.items()
    }
    arguments = (
        chains,
        hardware_type(wide),
        PerPe({pe: last - first for pe, (first, last) in parts.items()}),
        blocks,
        PerPe({pe: each[: len(inputs)] for pe, each in own.items()}),
        PerPe({pe: each[len(inputs) :] for pe, each in own.items()}),
    )
    launched(name, kernels.rowwise, arguments, windows, list(parts))
    return True


def _blocks(
    given: Sequence[Formed],
    function: kernels.RowFunction,
    wide: torch.dtype,
    rows: int,
    columns: int,
) -> kernels.RowBlocks | None:
    """The blocks of a PE with a number of rows, of which several fit the scratch; None if a row
    does not.
    """
    vectors = sum(form == "row" for _, form in given)
    expands = vectors > 0 and columns > longest_kept(vectors)
    matrices = sum(each.itemsize for each, form in given if form == "matrix") * columns
    matrices += 8 * sum(form == "column" for _, form in given)
    # Of each row of a block at a time: what is between chains, and rows that are expanded.
    between = (function.kept + expands * (vectors + 1)) * wide.itemsize * columns
    room = most_elements(1) - vectors * 2 * wide.itemsize * columns - _BLOCKS * len(given) * 512
    height = min(-(-rows // _BLOCKS), room // (matrices + between))
    if height < 1:
        height = 1
        room += (_BLOCKS - 1) * len(given) * 512
    count = min((room - height * between) // (height * matrices), _BLOCKS)
    return kernels.RowBlocks(height, columns, count, expands) if count > 0 else None


def sum_of_rows(
    out: torch.Tensor, matrix: torch.Tensor, shape: tuple[int, int], scale: float = 1
) -> None:
    """Write the sum of all rows, or of all elements if `out` is one number, times `scale` to `out`,
    in one launch: each PE sums its rows, then the PEs of a cube, then the cubes.
    """
    (rows, columns), is_number = shape, out.numel() == 1
    wide = torch.float64 if matrix.dtype == torch.float64 else torch.float32
    source, target = window_of(matrix), window_of(out)
    parts = dealt_rows(rows, source.window)
    # A panel of columns whose sums the registers of the vector engine hold.
    width = min(columns, longest_kept(1))
    most = most_elements((_ROW_BLOCKS + 1) * matrix.itemsize) // width
    own = max(last - first for first, last in parts.values())
    partial = torch.empty(
        (len(parts), 1 if is_number else columns), dtype=wide, device=matrix.device
    )
    sums = kernels.RowSums(
        parts=len(parts),
        block=(max(1, min(most, -(-own // _ROW_BLOCKS))), width),
        group=get_device_properties().pes_per_cube,
        columns=columns,
        least=_LEAST_COLUMNS,
        is_number=is_number,
        scale=scale,
    )
    numbered = {pe: (index, *span) for index, (pe, span) in enumerate(parts.items())}
    between = window_of(partial)
    arguments = (
        hardware_type(wide),
        PerPe(numbered),
        sums,
        pointer_of(source),
        pointer_of(between),
        pointer_of(target),
    )
    launched("sum", kernels.sum_of_rows, arguments, [source, between, target], list(parts))


def sum_of_parts(out: torch.Tensor, parts: torch.Tensor) -> None:
    """Write the sum over the first axis of `parts` to `out`, which has its other axes."""
    if out.is_contiguous():
        _sums_of_columns(out, parts.view(parts.shape[0], -1))
    else:
        out.copy_(parts.sum(0))


def _sums_of_columns(out: torch.Tensor, partial: torch.Tensor) -> None:
    rows, columns = partial.shape
    target, source = window_of(out), window_of(partial)
    movers = spread(columns, out.itemsize)
    bounds = chunk_bounds(columns, len(movers))
    parts = {(spec.cube, spec.pe): span for spec, span in zip(movers, bounds, strict=True)}
    at_once = max(1, most_elements(3 * partial.itemsize) // rows)
    arguments = (PerPe(parts), (rows, columns), at_once, pointer_of(source), pointer_of(target))
    launched("sum", kernels.sum_of_columns, arguments, [source, target], list(parts))


def dealt_rows(rows: int, matrix: DeviceTensor) -> dict[Pe, tuple[int, int]]:
    """The rows [first, last) of each PE: of equal numbers, on those that hold the matrix."""
    pes = [(shard.spec.cube, shard.spec.pe) for shard in matrix.shards][:rows]
    bounds = chunk_bounds(rows, len(pes))
    return {pe: span for pe, span in zip(pes, bounds, strict=True) if span[0] < span[1]}
