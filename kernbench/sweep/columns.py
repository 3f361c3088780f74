"""The columns of a sweep: parameters, results, shares, and what the table of a bench has.

The table of a point has one or several rows. A heading of the table becomes a column with its unit
in the name: `algbw_gbs`. Where tables have several rows, the labels in which the rows of a point
differ follow: `algbw_gbs@256`. Labels equal in all rows of each point are columns of their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from kernbench.points.task import PointFault
from kernbench.sweep.points import SweepPoint
from kernbench.sweep.row import SweepRow
from kernbench.sweep.values import Value, plain
from runtime.core.bench_registry import Column, Table
from runtime.core.simtime import ns_from_ps

HASH, TIME, DIGEST, FAULT = "config_hash", "time_ns", "digest", "fault"
Cell = Value
"""None is an empty cell."""
Result = SweepRow | PointFault
_ROW_TIME = "row_time_ns"
_SEVERAL = "@"


def sweep_columns(results: Mapping[SweepPoint, Result]) -> dict[str, list[Cell]]:
    """Heading -> cells, one for each point, in the order of the points."""
    names = next(iter(results)).names
    columns: dict[str, list[Cell]] = {
        name: [point.values[index] for point in results] for index, name in enumerate(names)
    }
    rows = list(results.values())
    labels = _Labels([row.table for row in rows if isinstance(row, SweepRow) and row.table])
    cells = [dict(_cells(row, labels)) for row in rows]
    headings: dict[str, None] = dict.fromkeys((HASH, TIME, DIGEST))
    for each in cells:
        headings |= dict.fromkeys(each)
    # Last, also if the first row is that of a fault.
    del headings[FAULT]
    for heading in (*headings, FAULT):
        # The table of a bench may have a heading that is the name of a parameter.
        name = f"row_{heading}" if heading in names else heading
        columns[name] = _of_one_type([each.get(heading) for each in cells])
    return {name: _of_one_type(cells) for name, cells in columns.items()}


def _cells(row: Result, labels: "_Labels") -> Iterator[tuple[str, Cell]]:
    fault = row.reason if isinstance(row, PointFault) else row.fault
    if isinstance(row, SweepRow) and not fault:
        yield HASH, row.config_hash
        yield TIME, ns_from_ps(row.time_ps)
        yield DIGEST, row.digest
        for part, share in row.shares.items():
            yield f"{_slug(part)}_percent", share
        if row.table is not None:
            yield from labels.cells(row.table)
    yield FAULT, fault or None


class _Labels:
    """The labels in which rows of the tables of a sweep differ: the first that suffice."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._is_single = all(len(table.rows) <= 1 for table in tables)
        varying = [
            label.name
            for label in dict.fromkeys(label for table in tables for label in table.labels)
            if any(len(set(_labels(table, [label.name]))) > 1 for table in tables)
        ]
        self._varying = frozenset(varying)
        self._names = next(
            (
                varying[:count]
                for count in range(1, len(varying) + 1)
                if all(_differ(_labels(table, varying[:count])) for table in tables)
            ),
            None,
        )

    def cells(self, table: Table) -> Iterator[tuple[str, Cell]]:
        """The columns of a table."""
        for index, label in enumerate(table.labels):
            if table.rows and label.name not in self._varying:
                yield heading(label), table.rows[0].labels[index]
        for row, suffix in zip(table.rows, self._suffixes(table), strict=True):
            yield _ROW_TIME + suffix, ns_from_ps(row.time_ps)
            for column, value in zip(table.values, row.values, strict=True):
                yield heading(column) + suffix, value

    def _suffixes(self, table: Table) -> list[str]:
        if self._is_single:
            return [""] * len(table.rows)
        if self._names is None:
            # Rows with equal labels have numbers.
            return [f"{_SEVERAL}{number}" for number in range(1, len(table.rows) + 1)]
        return [_SEVERAL + ",".join(labels) for labels in _labels(table, self._names)]


def _labels(table: Table, names: Sequence[str]) -> list[tuple[str, ...]]:
    """The labels of these names, of each row."""
    positions = [index for index, label in enumerate(table.labels) if label.name in names]
    return [tuple(str(row.labels[index]) for index in positions) for row in table.rows]


def _differ(labels: Sequence[tuple[str, ...]]) -> bool:
    return len(set(labels)) == len(labels)


def heading(column: Column) -> str:
    """The name of a column of a bench's table, with its unit: `algbw_gbs`."""
    unit = {"%": "percent"}.get(column.unit, column.unit.replace("/", ""))
    return _slug(f"{column.name} {unit}")


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _of_one_type(cells: Sequence[Cell]) -> list[Cell]:
    """The cells; all of them as text, or as numbers with a fraction, if they have several types."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if len(kinds) < 2:
        return list(cells)
    if kinds == {int, float}:
        return [None if cell is None else float(cell) for cell in cells]
    return [None if cell is None else plain(cell) for cell in cells]
