"""The kernel of sums of rows or of columns of a matrix, over all PEs in a defined order."""

from typing import NamedTuple

from runtime.core.dtypes import DType
from runtime.device.kernels.conversions import in_type
from runtime.language import tl
from runtime.language.value import Pointer, Value

_AHEAD = 4
"""Blocks of rows that are loaded beside the sum of another one."""


class RowSums(NamedTuple):
    """A sum of rows: `part` (number, first, last) are the rows of a PE, a `block` is the number of
    rows and of columns at once, `group` that of the PEs which add their sums first. Of `columns`, a
    PE adds at least `least`, and at most `widest` at once. If all elements are summed, the result
    is one number; `scale` is its factor.
    """

    parts: int
    block: tuple[int, int]
    group: int
    columns: int
    least: int
    widest: int
    is_number: bool
    scale: float


class AddedRows(NamedTuple):
    """`height` rows, a `pitch` apart, which are added in `dtype`, `at_once` columns at a time."""

    height: int
    pitch: int
    at_once: int
    dtype: DType


def sum_of_rows(
    dtype: DType,
    part: tuple[int, int, int],
    sums: RowSums,
    source: Pointer,
    partial: Pointer,
    out: Pointer,
) -> None:
    """Kernel: `out` is the sum, in `dtype`, of the rows of `source`. Each PE sums its rows to a row
    of `partial`, the PEs of a group then columns of their rows to that of the first one, and all
    PEs columns of these.
    """
    number, *span = part
    columns = 1 if sums.is_number else sums.columns
    _own_sums(dtype, (span[0], span[1]), sums, source, partial + number * columns)
    tl.barrier()
    members = sums.parts
    if sums.parts > sums.group and not sums.is_number:
        first = number // sums.group * sums.group
        members = min(sums.group, sums.parts - first)
        address = partial + first * columns
        rows = AddedRows(members, columns, sums.widest, dtype)
        _add_rows(rows, address, address, _share(columns, number - first, members, sums.least))
        tl.barrier()
        members = tl.cdiv(sums.parts, sums.group)
    pitch = columns * (sums.group if members < sums.parts else 1)
    mine = _share(columns, number, sums.parts, sums.least)
    _add_rows(AddedRows(members, pitch, sums.widest, dtype), partial, out, mine, sums.scale)


def _own_sums(
    dtype: DType, span: tuple[int, int], sums: RowSums, source: Pointer, target: Pointer
) -> None:
    (height, width), (first, last) = sums.block, span
    for column in range(0, sums.columns, width):
        wide = min(width, sums.columns - column)
        with tl.scratch():
            total = tl.zeros((1, wide), dtype)
            starts, ring = list(range(first, last, height)), list[tl.PendingValue]()
            for row in [*starts, *[None] * _AHEAD]:
                if len(ring) == _AHEAD or row is None:
                    if not ring:
                        break
                    tl.fused(_added, total, ring.pop(0).wait(), out=total)
                if row is not None:
                    shape = min(height, last - row), wide
                    start = source + row * sums.columns + column
                    ring.append(tl.load_async(start, shape, (sums.columns, 1)))
            if sums.is_number:
                total = tl.sum(total, 1, keep_dims=True)
            tl.store(target + column, total)


def _add_rows(
    rows: AddedRows, source: Pointer, target: Pointer, columns: tuple[int, int], scale: float = 1
) -> None:
    """Write the sums of the columns [first, last)."""
    first, last = columns
    for column in range(first, last, rows.at_once):
        with tl.scratch():
            width = min(rows.at_once, last - column)
            values = tl.load(source + column, (rows.height, width), (rows.pitch, 1))
            total = tl.sum(in_type(values, rows.dtype), 0, keep_dims=True)
            scaled = total if scale == 1 else total * scale
            tl.store(target + column, in_type(scaled, target.dtype))


def _share(columns: int, number: int, parts: int, least: int) -> tuple[int, int]:
    """The columns of one of `parts` PEs, each of which has at least `least`, or none."""
    width = max(least, tl.cdiv(columns, parts))
    return min(number * width, columns), min((number + 1) * width, columns)


def sum_of_columns(
    part: tuple[int, int], rows: AddedRows, scale: float, source: Pointer, out: Pointer
) -> None:
    """Kernel: elements [first, last) of `out` are the sums of these columns, times `scale`."""
    _add_rows(rows, source, out, part, scale)


def _added(total: Value, values: Value) -> Value:
    return total + tl.sum(in_type(values, total.dtype), 0, keep_dims=True)
