"""Kernels on rows that a list of numbers selects."""

from collections.abc import Sequence

from runtime.language import tl
from runtime.language.value import Pointer

_ROWS_AT_ONCE = 64


def select_rows(
    part: tuple[int, int], columns: int, most: int, indices: Pointer, table: Pointer, out: Pointer
) -> None:
    """Kernel: rows [first, last) of `out` are those of `table` that `indices` names, all of
    `columns` elements; at most `most` elements at once.
    """
    first, last = part
    wide = min(columns, most)
    high = max(1, min(_ROWS_AT_ONCE, most // wide))
    for row in range(first, last, high):
        count = min(high, last - row)
        with tl.scratch():
            chosen = tl.load(indices + row, count)
            for column in range(0, columns, wide):
                width = min(wide, columns - column)
                with tl.scratch():
                    rows = tl.gather(table + column, chosen, width, (columns, 1))
                    tl.store(out + row * columns + column, rows, (columns, 1))


def sum_rows(
    sums: Sequence[tuple[int, Sequence[int]]],
    columns: int,
    most: int,
    longest: int,
    source: Pointer,
    out: Pointer,
) -> None:
    """Kernel: for each (target, rows), row `target` of `out` is the sum of these rows of `source`,
    in float32; at most `most` elements at once, and `longest` columns.
    """
    wide = min(columns, most // 4, longest)
    high = max(1, most // wide // 2)
    for target, rows in sums:
        for column in range(0, columns, wide):
            width = min(wide, columns - column)
            with tl.scratch():
                total = tl.zeros((1, width), tl.float32)
                for start in range(0, len(rows), high):
                    with tl.scratch():
                        part = tl.gather(
                            source + column, rows[start : start + high], width, (columns, 1)
                        )
                        tl.fused(_added, total, part, out=total)
                result = total if out.dtype == tl.float32 else total.to(out.dtype)
                tl.store(out + target * columns + column, result)


def _added(total: tl.Value, part: tl.Value) -> tl.Value:
    wide = part if part.dtype == tl.float32 else part.to(tl.float32)
    return total + tl.sum(wide, 0, keep_dims=True)
