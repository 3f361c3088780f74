"""The kernel of operators that work on whole rows of matrices: softmax, normalisation, reductions.

A block of rows is loaded, computed as one chain of the vector engine with reductions along the
rows, and stored.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer, Value

Function = Callable[..., Value | tuple[Value, ...]]


class RowOperand(NamedTuple):
    """A tensor of a launch: a matrix, one row for all rows, or one number for each row."""

    pointer: Pointer
    form: Literal["matrix", "row", "column"]


def rowwise(
    function: Function,
    dtype: DType,
    part: tuple[int, int],
    block: tuple[int, int],
    inputs: Sequence[RowOperand],
    outs: Sequence[RowOperand],
) -> None:
    """Kernel: `function` of the inputs in `dtype`, on the rows [first, last) of this PE; a `block`
    is the number of rows at once, and of columns.
    """
    first, last = part
    height, columns = block

    def chain(*loaded: Value) -> tuple[Value, ...]:
        results = function(*(_in(each, dtype) for each in loaded))
        listed = results if isinstance(results, tuple) else (results,)
        return tuple(_in(each, out.pointer.dtype) for each, out in zip(listed, outs, strict=True))

    for row in range(first, last, height):
        rows = min(height, last - row)
        with tl.scratch():
            loaded = [_loaded(each, row, rows, columns) for each in inputs]
            results = tl.fused(chain, *loaded)
            for result, out in zip(results, outs, strict=True):
                start = row if out.form == "column" else row * columns
                tl.store(out.pointer + start, result)


def sum_of_rows(
    dtype: DType,
    part: tuple[int, int, int],
    block: tuple[int, int],
    source: Pointer,
    out: Pointer,
) -> None:
    """Kernel: row `number` of `out` is the sum, in `dtype`, of the rows [first, last) of `source`,
    for part (number, first, last); a `block` is the number of rows at once, and of columns.
    """
    number, first, last = part
    height, columns = block
    with tl.scratch():
        total = tl.zeros((1, columns), dtype)
        for row in range(first, last, height):
            with tl.scratch():
                values = tl.load(source + row * columns, (min(height, last - row), columns))
                tl.fused(_added, total, values, out=total)
        tl.store(out + number * columns, _in(total, out.dtype))


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


def _loaded(operand: RowOperand, row: int, rows: int, columns: int) -> Value:
    if operand.form == "row":
        return tl.load(operand.pointer, (1, columns))
    if operand.form == "column":
        return tl.load(operand.pointer + row, (rows, 1))
    return tl.load(operand.pointer + row * columns, (rows, columns))
