"""The kernel of operators that work on whole rows of matrices: softmax, normalisation, reductions.

A block of rows is loaded, computed as chains of the vector engine with reductions along the rows,
and stored.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value

_EXPANDED = 512
"""The columns of a row that are expanded at once: the registers of the vector engine hold them."""
Function = Callable[..., Value | tuple[Value, ...]]


class RowOperand(NamedTuple):
    """A tensor of a launch: a matrix, one row for all rows, or one number for each row."""

    pointer: Pointer
    form: Literal["matrix", "row", "column"]


class RowFunction(NamedTuple):
    """The chains of the vector engine for a block of rows.

    The first one takes matrices and columns of the inputs, in the type of the computation, each
    other one the results of the chain before it. That with number `with_rows` takes the rows behind
    them. The last one returns the results. Between two chains are at most `kept` matrices.
    """

    chains: tuple[Function, ...]
    kept: int = 0
    with_rows: int = 0


class RowBlocks(NamedTuple):
    """`height` rows of `columns` are a block, `count` blocks are in the scratch at once.

    If a row has more vectors than registers, it `expands` to a matrix.
    """

    height: int
    columns: int
    count: int
    expands: bool


def rowwise(
    function: RowFunction,
    dtype: DType,
    part: tuple[int, int],
    blocks: RowBlocks,
    inputs: Sequence[RowOperand],
    outs: Sequence[RowOperand],
) -> None:
    """Kernel: `function` of the inputs in `dtype`, on the rows [first, last) of this PE. The next
    blocks are loaded and those before are stored while the vector engine computes.
    """
    last, columns = part[1], blocks.columns
    with tl.scratch():
        rows = [_row(each, dtype, blocks) for each in inputs if each.form == "row"]
        others = [each for each in inputs if each.form != "row"]
        for first in range(part[0], last, blocks.height * blocks.count):
            starts = range(first, min(first + blocks.height * blocks.count, last), blocks.height)
            spans = [(start, min(blocks.height, last - start)) for start in starts]
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

    def wide(chain: Function) -> Function:
        return lambda *given: chain(*(_in(each, dtype) for each in given))

    def rounded(*given: Value) -> tuple[Value, ...]:
        returned = wide(last)(*given)
        listed = returned if isinstance(returned, tuple) else (returned,)
        return tuple(_in(each, result.dtype) for each, result in zip(listed, results, strict=True))

    for number, chain in enumerate(before):
        returned = tl.fused(wide(chain), *values, *(rows if number == function.with_rows else ()))
        values = returned if isinstance(returned, tuple) else (returned,)
    with_rows = rows if function.with_rows == len(before) else ()
    tl.fused(rounded, *values, *with_rows, out=tuple(results))


def _row(operand: RowOperand, dtype: DType, blocks: RowBlocks) -> Value:
    """A row in the type of the computation, or a block in which all rows are equal to it."""
    row = _in(tl.load(operand.pointer, (1, blocks.columns)), dtype)
    if not blocks.expands:
        return row
    block = tl.empty((blocks.height, blocks.columns), dtype)
    for column in range(0, blocks.columns, _EXPANDED):
        part = slice(column, min(column + _EXPANDED, blocks.columns))
        zero = tl.zeros((blocks.height, part.stop - column), dtype)
        tl.fused(lambda zero, row: zero + row, zero, row[:, part], out=block[:, part])
    return block


def sum_of_rows(
    dtype: DType,
    part: tuple[int, int, int],
    block: tuple[int, int],
    columns: int,
    source: Pointer,
    out: Pointer,
) -> None:
    """Kernel: row `number` of `out` is the sum, in `dtype`, of the rows [first, last) of `source`,
    for part (number, first, last); a `block` is the number of rows and of columns at once.
    """
    number, first, last = part
    height, width = block
    for column in range(0, columns, width):
        wide = min(width, columns - column)
        with tl.scratch():
            total = tl.zeros((1, wide), dtype)
            for row in range(first, last, height):
                with tl.scratch():
                    start, shape = row * columns + column, (min(height, last - row), wide)
                    values = tl.load(source + start, shape, (columns, 1))
                    tl.fused(_added, total, values, out=total)
            tl.store(out + number * columns + column, _in(total, out.dtype))


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
            tl.store(out + column, _in(tl.sum(values, 0, keep_dims=True), out.dtype))


def _added(total: Value, values: Value) -> Value:
    return total + tl.sum(_in(values, total.dtype), 0, keep_dims=True)


def _in(value: Value, dtype: DType) -> Value:
    return value if value.dtype == dtype else value.to(dtype)


def _start(operand: RowOperand, row: int, columns: int) -> Pointer:
    return operand.pointer + (row if operand.form == "column" else row * columns)


def _loading(operand: RowOperand, row: int, rows: int, columns: int) -> tl.PendingValue:
    shape = (rows, 1 if operand.form == "column" else columns)
    return tl.load_async(_start(operand, row, columns), shape)
