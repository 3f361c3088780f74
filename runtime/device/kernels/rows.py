"""Kernels on rows that a list of numbers selects."""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.device.kernels.bounds import IndexBounds
from runtime.device.kernels.conversions import in_type
from runtime.device.kernels.streamed import SIDE_BY_SIDE, BlockRing, streamed
from runtime.language import tl
from runtime.language.value import Pointer

_BLOCKS, _LEAST_ROWS = 8, 8
"""The blocks of a PE, if they have as many rows."""
_SECTION = 2048
"""The indices that are in the scratch at once."""
_BLOCK_BYTES = 1 << 15
"""The bytes of the rows that are gathered at once."""


RowSum = tuple[int, Sequence[int]]
"""The number of a row, and those of the rows of which it is the sum."""


class _RowBlock(NamedTuple):
    """Rows from number `row` on, and columns."""

    row: int
    rows: int
    column: int
    columns: int


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
    `columns` elements; at most `most` elements at once. The next rows are gathered while those
    before are stored.
    """
    first, last = part
    for start in range(first, last, _SECTION):
        count = min(_SECTION, last - start)
        with tl.scratch():
            chosen = tl.load(indices + start, count)
            bounds.check(chosen, start)
            _copy_selected(chosen, columns, most, table, out + start * columns)


def _copy_selected(chosen: tl.Value, columns: int, most: int, table: Pointer, out: Pointer) -> None:
    pace, count = SIDE_BY_SIDE, chosen.shape[0]
    slots = pace.slots(0, pace.behind(1))
    at_once = min(most // slots, max(columns, _BLOCK_BYTES // table.dtype.itemsize))
    wide = min(columns, at_once)
    high = min(max(1, at_once // wide), max(_LEAST_ROWS, tl.cdiv(count, _BLOCKS)))
    blocks = [
        _RowBlock(row, min(high, count - row), column, min(wide, columns - column))
        for row in range(0, count, high)
        for column in range(0, columns, wide)
    ]
    ring = BlockRing(slots, high * wide, table.dtype)
    gathers, stores = dict[int, tl.PendingValue](), list[tl.PendingResult]()

    def gather(index: int) -> None:
        block = blocks[index]
        rows, shape = chosen[block.row : block.row + block.rows], (block.rows, block.columns)
        gathers[index] = tl.gather_async(
            table + block.column, rows, block.columns, (columns, 1), out=ring.of(index, shape)
        )

    def store(index: int) -> None:
        block = blocks[index]
        while stores:
            stores.pop().wait()
        target = out + block.row * columns + block.column
        stores.append(tl.store_async(target, gathers.pop(index).wait(), (columns, 1)))

    streamed(len(blocks), pace, gather, [lambda _: None], store)


def sum_rows(  # noqa: PLR0917 - the arguments of a launch are positional
    sums: Sequence[RowSum],
    columns: int,
    most: int,
    longest: int,
    adds: bool,  # noqa: FBT001 - see above
    source: Pointer,
    out: Pointer,
) -> None:
    """Kernel: for each (target, rows), row `target` of `out` is the sum of these rows of `source`,
    in float32, to which it `adds` its elements before; at most `most` elements at once, and
    `longest` columns. Short sums are a stream of blocks, each of which is one gather.
    """
    wide = min(columns, most // 4, longest)
    at_once = max(1, _BLOCK_BYTES // (wide * source.dtype.itemsize))
    short = [each for each in sums if len(each[1]) <= at_once]
    if short:
        with tl.scratch():
            _SumStream(short, (columns, wide, at_once), source, out, adds=adds).run()
    for target, rows in sums:
        if len(rows) > at_once:
            _sum_long(target, rows, (columns, wide, max(1, most // wide // 2)), source, out, adds)


class _SumStream:
    """Sums of a few rows each, of `shape` (columns, columns at once, rows at once)."""

    def __init__(
        self,
        sums: Sequence[RowSum],
        shape: tuple[int, int, int],
        source: Pointer,
        out: Pointer,
        *,
        adds: bool,
    ) -> None:
        self._columns, self._wide, at_once = shape
        self._source, self._out, self._adds = source, out, adds
        self._blocks = [
            (block, column)
            for block in sum_blocks(sums, at_once)
            for column in range(0, self._columns, self._wide)
        ]
        pace, elements = SIDE_BY_SIDE, at_once * self._wide
        slots = pace.slots(0, pace.behind(0))
        self._rows = BlockRing(slots, elements, source.dtype)
        self._before = BlockRing(slots, elements, out.dtype) if adds else None
        self._results = BlockRing(2, elements, out.dtype)
        self._loads: dict[int, list[tl.PendingValue]] = {}
        self._stores: list[tl.PendingResult] = []

    def run(self) -> None:
        streamed(len(self._blocks), SIDE_BY_SIDE, self._load, [self._compute], self._store)

    def _load(self, index: int) -> None:
        (block, column), width = self._blocks[index], self._width(index)
        rows = [row for _, rows in block for row in rows]
        gathered = [(self._source, rows, self._rows)]
        if self._before is not None:
            gathered.append((self._out, [target for target, _ in block], self._before))
        self._loads[index] = [
            tl.gather_async(
                pointer + column,
                numbers,
                width,
                (self._columns, 1),
                out=ring.of(index, (len(numbers), width)),
            )
            for pointer, numbers, ring in gathered
        ]

    def _compute(self, index: int) -> None:
        block, _ = self._blocks[index]
        rows, *before = (each.wait() for each in self._loads.pop(index))
        results = self._result(index)
        # Rows that stand alone are in front.
        single = sum(len(rows) == 1 for _, rows in block)
        spans = [(0, single, 0, single)] if single else []
        first = single
        for number, (_, summed) in enumerate(block[single:], single):
            spans.append((number, number + 1, first, first + len(summed)))
            first += len(summed)
        for start, stop, first, last in spans:
            operands = rows[first:last], *(each[start:stop] for each in before)
            chain = self._summed if last - first > stop - start else self._converted
            tl.fused_async(chain, *operands, out=results[start:stop])

    def _summed(self, rows: tl.Value, *before: tl.Value) -> tl.Value:
        return self._converted(tl.sum(in_type(rows, tl.float32), 0, keep_dims=True), *before)

    def _converted(self, rows: tl.Value, *before: tl.Value) -> tl.Value:
        total = in_type(before[0], tl.float32) if before else 0.0
        return in_type(in_type(rows, tl.float32) + total, self._out.dtype)

    def _store(self, index: int) -> None:
        for each in self._stores:
            each.wait()
        (block, column), results = self._blocks[index], self._result(index)
        self._stores = [
            tl.store_async(
                self._out + target * self._columns + column,
                results[first:last],
                (self._columns, 1),
            )
            for target, first, last in runs_of([target for target, _ in block])
        ]

    def _result(self, index: int) -> tl.Value:
        block, _ = self._blocks[index]
        return self._results.of(index, (len(block), self._width(index)))

    def _width(self, index: int) -> int:
        _, column = self._blocks[index]
        return min(self._wide, self._columns - column)


def sum_blocks(sums: Sequence[RowSum], at_once: int) -> list[list[RowSum]]:
    """Sums that have at most as many rows together, rows that stand alone first."""
    blocks, count = list[list[RowSum]](), at_once
    for each in sorted(sums, key=lambda each: len(each[1]) > 1):
        count += len(each[1])
        if count > at_once:
            blocks.append([])
            count = len(each[1])
        blocks[-1].append(each)
    return blocks


def runs_of(targets: Sequence[int]) -> list[tuple[int, int, int]]:
    """The runs of neighbours among targets: the first target, and the positions of the run."""
    runs = list[tuple[int, int, int]]()
    for position, target in enumerate(targets):
        if runs and target - runs[-1][0] == position - runs[-1][1]:
            runs[-1] = (*runs[-1][:2], position + 1)
        else:
            runs.append((target, position, position + 1))
    return runs


def _sum_long(
    target: int,
    rows: Sequence[int],
    shape: tuple[int, int, int],
    source: Pointer,
    out: Pointer,
    adds: bool,  # noqa: FBT001 - as `sum_rows`
) -> None:
    """The sum of many rows: `shape` has the columns, and those and the rows at once."""
    columns, wide, high = shape
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
                    numbers = rows[start : start + high]
                    part = tl.gather(source + column, numbers, width, (columns, 1))
                    tl.fused(_added, total, part, out=total)
            tl.store(target_row, in_type(total, out.dtype))


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
                # The end of the scratch waits for them.
                for index, (target, _) in enumerate(pairs):
                    tl.store_async(out + target * columns + column, rows[index : index + 1])
