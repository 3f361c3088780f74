"""Launches of operators on whole rows: equal numbers of rows for each PE.

The rows are dealt over as many PEs as hold the matrix, in the order of memory, so that a PE has
the rows of its own slice where the shares of the storage are whole rows.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from kernbench.torch_backend.launching.launches import (
    launched,
    longest_kept,
    most_elements,
    pointer_of,
    window_of,
)
from kernbench.torch_backend.runtime.element_types import hardware_type
from kernbench.torch_backend.runtime.storages import storages
from runtime.ccl.exchange import chunk_bounds
from runtime.core.dtypes import DType
from runtime.core.requests import PerPe
from runtime.device.kernels import row_sums
from runtime.device.kernels import rowwise as kernels
from runtime.device.kernels.shared_rows import SharedRow
from runtime.device.kernels.streamed import IN_TURN, SIDE_BY_SIDE, StagePace
from runtime.device.launches.device_tensor import DeviceTensor
from runtime.device.launches.strided_window import StridedWindow
from runtime.device.rank.properties import get_device_properties
from runtime.device.regions.regions import Pe

_BLOCKS, _LEAST_ELEMENTS = 8, 4096
"""The blocks of a PE, if they have as many elements."""
_ROW_BLOCKS = 4
"""The blocks of a PE that sums rows."""
_LEAST_COLUMNS = 128
"""Columns of partial sums that a PE adds: fewer are loaded in bursts of a few bytes."""
_COLUMN_REGISTERS = 8
"""The registers for numbers of the rows of a block."""
_COLUMN_BYTES = 1 << 16
"""Scratch for the numbers of all rows of a PE, which are loaded or stored at once."""
_SHARED_BYTES = 1024
"""The bytes of a row from which the PEs of a cube share it."""
_PE_BYTES = 4096
"""The least share of a storage that a PE has."""
_ALIGNMENT_BYTES = 1 << 15
"""Scratch that the alignment of values may take."""
Formed = tuple[torch.Tensor, kernels.Form]
"""A contiguous tensor, with its form: matrix, row or column."""


def matrix(tensor: torch.Tensor) -> Formed:
    """A matrix, in memory row by row."""
    return tensor.contiguous(), "matrix"


def row(tensor: torch.Tensor) -> Formed:
    """One row for all rows."""
    return tensor.contiguous(), "row"


def column(tensor: torch.Tensor) -> Formed:
    """A number for each row."""
    return tensor.contiguous(), "column"


def launch_rowwise(
    name: str,
    chains: Sequence[kernels.RowChain],
    shape: tuple[int, int],
    inputs: Mapping[str, Formed],
    outs: Mapping[str, Formed],
) -> bool:
    """Compute chains on rows of tensors by their names, the first of which has the type of the
    computation, or a shorter one; False if a row does not fit the scratch of a PE.
    """
    rows, columns = shape
    if not rows or not columns:
        return False
    # The chains compute in float32 or float64.
    first, _ = next(iter(inputs.values()))
    wide = hardware_type(torch.float64 if first.dtype == torch.float64 else torch.float32)
    windows = {each: window_of(tensor) for each, (tensor, _) in (*inputs.items(), *outs.items())}
    parts = dealt_rows(rows, windows[next(iter(inputs))].window)
    most_rows = max(last - first for first, last in parts.values())
    tensors = [
        [
            kernels.RowTensor(each, form, hardware_type(tensor.dtype))
            for each, (tensor, form) in given.items()
        ]
        for given in (inputs, outs)
    ]
    blocks = _blocks(chains, tensors[0], tensors[1], wide, (most_rows, columns))
    if blocks is None:
        return False
    shared = {
        each: _shared(tensor, parts) for each, (tensor, form) in inputs.items() if form == "row"
    }
    used = [*windows.values(), *(each.window for each in shared.values() if each is not None)]

    def operands(pe: Pe, given: Sequence[kernels.RowTensor]) -> tuple[kernels.RowOperand, ...]:
        first, _ = parts[pe]
        return tuple(
            [
                kernels.RowOperand(
                    each,
                    pointer_of(windows[each.name]),
                    None if (row := shared.get(each.name)) is None else row.of_pes[pe],
                ).from_row(first, columns)
                for each in given
            ]
        )

    arguments = (
        tuple(chains),
        wide,
        PerPe({pe: last - first for pe, (first, last) in parts.items()}),
        blocks,
        *(PerPe({pe: operands(pe, given) for pe in parts}) for given in tensors),
    )
    launched(name, kernels.rowwise, arguments, used, list(parts))
    return True


def _blocks(
    chains: Sequence[kernels.RowChain],
    inputs: Sequence[kernels.RowTensor],
    outs: Sequence[kernels.RowTensor],
    wide: DType,
    shape: tuple[int, int],
) -> kernels.RowBlocks | None:
    """The blocks of a PE, at the fastest pace for which they fit the scratch; None if a row does
    not.
    """
    rows, columns = shape
    vectors = [each for each in inputs if each.form == "row"]
    expands = len(vectors) * columns > _most_kept()
    column_bytes = sum(each.dtype.itemsize for each in (*inputs, *outs) if each.form == "column")
    at_once = rows * column_bytes <= _COLUMN_BYTES
    # A row as it is loaded, and in the type of the computation.
    beside = (
        _ALIGNMENT_BYTES
        + at_once * rows * column_bytes
        + columns
        * sum(each.dtype.itemsize + (each.dtype != wide) * wide.itemsize for each in vectors)
    )
    wanted = max(
        1, min(rows, max(-(-rows // _BLOCKS), _LEAST_ELEMENTS // columns), most_block_rows())
    )
    for pace in (SIDE_BY_SIDE, StagePace(1, 1), IN_TURN):
        plan = kernels.RowPlan(chains, inputs, outs, wide, pace)
        row_bytes = plan.row_bytes(columns) + expands * len(vectors) * wide.itemsize * columns
        height = min(wanted, most_elements(row_bytes, beside=beside))
        if height * row_bytes + beside <= most_elements(1, beside=0):
            return kernels.RowBlocks(height, columns, pace, expands, at_once)
    return None


def most_block_rows() -> int:
    """The rows of a block whose sums and factors the registers of the vector engine hold."""
    return 2 * storages().state.topology.pe.math.lanes


def _most_kept() -> int:
    """The elements of rows that the registers of the vector engine hold beside numbers of rows."""
    math = storages().state.topology.pe.math
    return math.lanes * max(0, math.registers - _COLUMN_REGISTERS)


class _RowCopies(NamedTuple):
    """The memory in which the PEs share a row, and what each has of it."""

    window: StridedWindow
    of_pes: dict[Pe, SharedRow]


def _shared(row: torch.Tensor, parts: Mapping[Pe, object]) -> _RowCopies | None:
    """The parts of a row that the PEs share; None if each of them loads all of it."""
    device, columns = get_device_properties(), row.numel()
    if len(parts) <= device.pes_per_cube or columns * row.itemsize < _SHARED_BYTES:
        return None
    cubes: dict[int, list[Pe]] = {}
    for pe in parts:
        cubes.setdefault(pe[0], []).append(pe)
    of_pe = max(_PE_BYTES // row.itemsize, *(-(-columns // len(each)) for each in cubes.values()))
    copies = window_of(torch.empty(device.pe_count * of_pe, dtype=row.dtype, device=row.device))
    start = pointer_of(copies)
    own = {
        (each.spec.cube, each.spec.pe): start + each.spec.offset_bytes // row.itemsize
        for each in copies.window.shards
    }
    shared: dict[Pe, SharedRow] = {}
    for pes in cubes.values():
        width = -(-columns // len(pes))
        for number, pe in enumerate(pes):
            part = number * width, min((number + 1) * width, columns)
            shared[pe] = SharedRow(part, own[pe], tuple([own[each] for each in pes]), width)
    return _RowCopies(copies, shared)


def sum_of_rows(
    out: torch.Tensor, matrix: torch.Tensor, shape: tuple[int, int], scale: float = 1
) -> None:
    """Write the sum of all rows, or of all elements if `out` is one number, times `scale` to `out`,
    in one launch: each PE sums its rows, then the PEs of a cube, then the cubes. Of fewer rows than
    there are PEs, each PE sums columns where that are more PEs.
    """
    (rows, columns), is_number = shape, out.numel() == 1
    wide = torch.float64 if matrix.dtype == torch.float64 else torch.float32
    source, target = window_of(matrix), window_of(out)
    parts = dealt_rows(rows, source.window)
    summed = hardware_type(wide)
    if len(parts) < min(len(target.window.shards), columns // _LEAST_COLUMNS):
        added = row_sums.AddedRows(rows, columns, _most_columns(rows, summed), summed)
        _sum_of_columns(target, source, added, scale)
        return
    # A panel of columns whose sums the registers of the vector engine hold.
    width = min(columns, longest_kept(1))
    most = most_elements((_ROW_BLOCKS + 1) * matrix.itemsize) // width
    own = max(last - first for first, last in parts.values())
    group = get_device_properties().pes_per_cube
    partial = torch.empty(
        (len(parts), 1 if is_number else columns), dtype=wide, device=matrix.device
    )
    sums = row_sums.RowSums(
        parts=len(parts),
        block=(max(1, min(most, -(-own // _ROW_BLOCKS))), width),
        group=group,
        columns=columns,
        least=_LEAST_COLUMNS,
        widest=_most_columns(max(group, -(-len(parts) // group)), summed),
        is_number=is_number,
        scale=scale,
    )
    numbered = {pe: (index, *span) for index, (pe, span) in enumerate(parts.items())}
    between = window_of(partial)
    arguments = (
        summed,
        PerPe(numbered),
        sums,
        pointer_of(source),
        pointer_of(between),
        pointer_of(target),
    )
    launched("sum", row_sums.sum_of_rows, arguments, [source, between, target], list(parts))


def _sum_of_columns(
    out: StridedWindow, matrix: StridedWindow, rows: row_sums.AddedRows, scale: float
) -> None:
    pes = [(shard.spec.cube, shard.spec.pe) for shard in out.window.shards]
    count = min(len(pes), rows.pitch // _LEAST_COLUMNS)
    parts = dict(zip(pes, chunk_bounds(rows.pitch, count), strict=False))
    arguments = (PerPe(parts), rows, scale, pointer_of(matrix), pointer_of(out))
    launched("sum", row_sums.sum_of_columns, arguments, [matrix, out], list(parts))


def _most_columns(rows: int, dtype: DType) -> int:
    """The columns of rows that are added at once: the scratch holds them as they are loaded, in the
    type of the sums, and the sums.
    """
    return most_elements((2 * rows + 3) * dtype.itemsize)


def dealt_rows(rows: int, matrix: DeviceTensor) -> dict[Pe, tuple[int, int]]:
    """The rows [first, last) of each PE: of equal numbers, on those that hold the matrix."""
    pes = [(shard.spec.cube, shard.spec.pe) for shard in matrix.shards][:rows]
    bounds = chunk_bounds(rows, len(pes))
    return {pe: span for pe, span in zip(pes, bounds, strict=True) if span[0] < span[1]}
