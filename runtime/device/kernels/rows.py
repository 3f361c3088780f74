"""Kernels on rows that a list of numbers selects."""

from collections.abc import Sequence

from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.conversions import in_type
from runtime.language import tl
from runtime.language.value import Pointer

_ROWS_AT_ONCE, _ELEMENTS_AT_ONCE = 64, 4096


def select_rows(  # noqa: PLR0917 - the arguments of a launch are positional
    part: tuple[int, int],
    columns: int,
    most: int,
    bounds: IndexBounds,
    indices: Pointer,
    table: Pointer,
    out: Pointer,
) -> None:
    """Kernel: rows [first, last) of `out` are those of `table` that `indices` names, all of
    `columns` elements; at most `most` elements at once.
    """
    first, last = part
    wide = min(columns, most)
    high = max(1, min(max(_ROWS_AT_ONCE, _ELEMENTS_AT_ONCE // wide), most // wide))
    for row in range(first, last, high):
        count = min(high, last - row)
        with tl.scratch():
            chosen = tl.load(indices + row, count)
            bounds.check(chosen, row)
            for column in range(0, columns, wide):
                width = min(wide, columns - column)
                with tl.scratch():
                    rows = tl.gather(table + column, chosen, width, (columns, 1))
                    tl.store(out + row * columns + column, rows, (columns, 1))


def sum_rows(  # noqa: PLR0917 - the arguments of a launch are positional
    sums: Sequence[tuple[int, Sequence[int]]],
    columns: int,
    most: int,
    longest: int,
    adds: bool,  # noqa: FBT001 - see above
    source: Pointer,
    out: Pointer,
) -> None:
    """Kernel: for each (target, rows), row `target` of `out` is the sum of these rows of `source`,
    in float32, to which it `adds` its elements before; at most `most` elements at once, and
    `longest` columns.
    """
    wide = min(columns, most // 4, longest)
    high = max(1, most // wide // 2)
    for target, rows in sums:
        for column in range(0, columns, wide):
            width = min(wide, columns - column)
            with tl.scratch():
                target_row = out + target * columns + column
                total = (
                    in_type(tl.load(target_row, (1, width)), tl.float32)
                    if adds
                    else tl.zeros((1, width), tl.float32)
                )
                for start in range(0, len(rows), high):
                    with tl.scratch():
                        part = tl.gather(
                            source + column, rows[start : start + high], width, (columns, 1)
                        )
                        tl.fused(_added, total, part, out=total)
                result = total if out.dtype == tl.float32 else total.to(out.dtype)
                tl.store(target_row, result)


def _added(total: tl.Value, part: tl.Value) -> tl.Value:
    return total + tl.sum(in_type(part, tl.float32), 0, keep_dims=True)


def store_rows(
    parts: tuple[tuple[int, int], ...], columns: int, most: int, source: Pointer, out: Pointer
) -> None:
    """Kernel: row `target` of `out` is row `position` of `source`, for each (target, position); at
    most `most` elements at once.
    """
    wide = min(columns, most)
    high = max(1, most // wide)
    for first in range(0, len(parts), high):
        pairs = parts[first : first + high]
        for column in range(0, columns, wide):
            width = min(wide, columns - column)
            with tl.scratch():
                rows = tl.gather(
                    source + column, [position for _, position in pairs], width, (columns, 1)
                )
                stores = [
                    tl.store_async(out + target * columns + column, rows[index : index + 1])
                    for index, (target, _) in enumerate(pairs)
                ]
                for each in stores:
                    each.wait()
