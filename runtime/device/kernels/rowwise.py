"""The kernel of operators that work on whole rows of matrices: softmax, normalisation, reductions.

A block of rows is loaded, computed as chains of the vector engine with reductions along the rows,
and stored.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from runtime.core.dtypes import DType
from runtime.device.kernels.conversions import in_type
from runtime.language import tl
from runtime.language.value import Pointer, Value

_EXPANDED = 512
"""The columns of a row that are expanded at once: the registers of the vector engine hold them."""
_AHEAD = 4
"""Blocks of rows that are loaded beside the sum of another one."""
Function = Callable[..., Value | tuple[Value, ...]]
Form = Literal["matrix", "row", "column"]


class RowOperand(NamedTuple):
    """A tensor of a launch: a matrix, one row for all rows, or one number for each row."""

    pointer: Pointer
    form: Form

    def from_row(self, row: int, columns: int) -> "RowOperand":
        """The tensor from a row of `columns` elements on."""
        start = {"matrix": row * columns, "row": 0, "column": row}[self.form]
        return RowOperand(self.pointer + start, self.form)


class RowFunction(NamedTuple):
    """The chains of the vector engine for a block of rows.

    The first one takes matrices and columns of the inputs, in the type of the computation, each
    other one the results of the chain before it. That with number `with_rows` takes the rows behind
    them. The last one returns the results. Between two chains are at most `kept` matrices.
    """

    chains: tuple[Function, ...]
    kept: int = 0
    with_rows: int = 0


@dataclass(frozen=True)
class RowBlocks:
    """`height` rows of `columns` are a block, `count` blocks are in the scratch at once.

    If a row has more vectors than registers, it `expands` to a matrix.
    """

    height: int
    columns: int
    at_once: int
    expands: bool


def rowwise(
    function: RowFunction,
    dtype: DType,
    count: int,
    blocks: RowBlocks,
    inputs: Sequence[RowOperand],
    outs: Sequence[RowOperand],
) -> None:
    """Kernel: `function` of the inputs in `dtype`, on the `count` rows of this PE. The next blocks
    are loaded and those before are stored while the vector engine computes.
    """
    columns = blocks.columns
    with tl.scratch():
        rows = [_row(each, dtype, blocks) for each in inputs if each.form == "row"]
        others = [each for each in inputs if each.form != "row"]
        for first in range(0, count, blocks.height * blocks.at_once):
            starts = range(first, min(first + blocks.height * blocks.at_once, count), blocks.height)
            spans = [(start, min(blocks.height, count - start)) for start in starts]
            with tl.scratch():
                pending = [[_loading(each, *span, columns) for each in others] for span in spans]
                stores = list[tl.PendingResult]()
                for (start, height), loads in zip(spans, pending, strict=True):
                    results = [
                        tl.empty(
                            (height, 1 if out.form == "column" else columns), out.pointer.dtype
                        )
                        for out in outs
                    ]
                    with tl.scratch():
                        loaded = tuple(each.wait() for each in loads)
                        _computed(function, dtype, loaded, [row[:height] for row in rows], results)
                    for out, result in zip(outs, results, strict=True):
                        stores.append(tl.store_async(_start(out, start, columns), result))
                for each in stores:
                    each.wait()


def _computed(
    function: RowFunction,
    dtype: DType,
    values: tuple[Value, ...],
    rows: Sequence[Value],
    results: Sequence[Value],
) -> None:
    """Write the results of all chains for a block."""
    *before, last = function.chains

    def wide(chain: Function) -> Callable[..., tuple[Value, ...]]:
        def of_wide(*given: Value) -> tuple[Value, ...]:
            returned = chain(*(in_type(each, dtype) for each in given))
            return returned if isinstance(returned, tuple) else (returned,)

        return of_wide

    def rounded(*given: Value) -> tuple[Value, ...]:
        pairs = zip(wide(last)(*given), results, strict=True)
        return tuple(in_type(each, result.dtype) for each, result in pairs)

    for number, chain in enumerate(before):
        values = tl.fused(wide(chain), *values, *(rows if number == function.with_rows else ()))
    with_rows = rows if function.with_rows == len(before) else ()
    tl.fused(rounded, *values, *with_rows, out=tuple(results))


def _row(operand: RowOperand, dtype: DType, blocks: RowBlocks) -> Value:
    """A row in the type of the computation, or a block in which all rows are equal to it."""
    row = in_type(tl.load(operand.pointer, (1, blocks.columns)), dtype)
    if not blocks.expands:
        return row
    block = tl.empty((blocks.height, blocks.columns), dtype)
    for column in range(0, blocks.columns, _EXPANDED):
        part = slice(column, min(column + _EXPANDED, blocks.columns))
        zero = tl.zeros((blocks.height, part.stop - column), dtype)
        tl.fused(tl.add, zero, row[:, part], out=block[:, part])
    return block


class RowSums(NamedTuple):
    """A sum of rows: `part` (number, first, last) are the rows of a PE, a `block` is the number of
    rows and of columns at once, `group` that of the PEs which add their sums first. Of `columns`, a
    PE adds at least `least`. If all elements are summed, the result is one number; `scale` is its
    factor.
    """

    parts: int
    block: tuple[int, int]
    group: int
    columns: int
    least: int
    is_number: bool
    scale: float


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
        _add_rows(
            (members, columns),
            address,
            address,
            _share(columns, number - first, members, sums.least),
        )
        tl.barrier()
        members = tl.cdiv(sums.parts, sums.group)
    pitch = columns * (sums.group if members < sums.parts else 1)
    mine = _share(columns, number, sums.parts, sums.least)
    _add_rows((members, pitch), partial, out, mine, sums.scale)


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
    shape: tuple[int, int],
    source: Pointer,
    target: Pointer,
    columns: tuple[int, int],
    scale: float = 1,
) -> None:
    (rows, pitch), (first, last) = shape, columns
    if first >= last:
        return
    with tl.scratch():
        values = tl.load(source + first, (rows, last - first), (pitch, 1))
        total = tl.sum(values, 0, keep_dims=True)
        tl.store(target + first, in_type(total if scale == 1 else total * scale, target.dtype))


def _share(columns: int, number: int, parts: int, least: int) -> tuple[int, int]:
    """The columns of one of `parts` PEs, each of which has at least `least`, or none."""
    width = max(least, tl.cdiv(columns, parts))
    return min(number * width, columns), min((number + 1) * width, columns)


def sum_of_columns(
    part: tuple[int, int], shape: tuple[int, int], at_once: int, source: Pointer, out: Pointer
) -> None:
    """Kernel: elements [first, last) of `out` are the sums of these columns of `source`, which has
    `shape`; `at_once` columns at once.
    """
    first, last = part
    rows, columns = shape
    for column in range(first, last, at_once):
        with tl.scratch():
            width = min(at_once, last - column)
            values = tl.load(source + column, (rows, width), (columns, 1))
            tl.store(out + column, in_type(tl.sum(values, 0, keep_dims=True), out.dtype))


def _added(total: Value, values: Value) -> Value:
    return total + tl.sum(in_type(values, total.dtype), 0, keep_dims=True)


def _start(operand: RowOperand, row: int, columns: int) -> Pointer:
    return operand.pointer + (row if operand.form == "column" else row * columns)


def _loading(operand: RowOperand, row: int, rows: int, columns: int) -> tl.PendingValue:
    shape = (rows, 1 if operand.form == "column" else columns)
    return tl.load_async(_start(operand, row, columns), shape)
