"""Prints a sweep: its points as a table, the best and the worst one, faults, files."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from coordinator.report.text_table import TextStyle, TextTable, text_columns
from kernbench.sweep.columns import DIGEST, FAULT, HASH, TIME, Cell
from kernbench.sweep.figures_quantity import Quantity
from kernbench.sweep.files import SweepDescription
from kernbench.sweep.values import plain

_STYLE = TextStyle(heading_marks=("# ", "  ", "  "), row_mark="  ")
_MOST_ROWS, _FIRST, _LAST = 40, 30, 8
"""A longer table is printed with its first and last rows."""
_MOST_FAULTS = 20
_LABEL_COLUMNS = 16
_PERCENT = "_percent"

Columns = Mapping[str, Sequence[Cell]]


def heading(description: SweepDescription, points: int) -> str:
    """The program, the fixed values and the number of points; printed before the first one."""
    fixed = [f"{each.name}={plain(each.values[0])}" for each in description.fixed]
    program = " ".join([description.program, *description.arguments, *fixed])
    return f"# sweep {program}: {points:,} points"


def sweep_table(columns: Columns, metrics: Iterable[str]) -> TextTable:
    """The parameters, the time, the metrics, the shares and the digest of each point."""
    headings = list(columns)
    names = headings[: headings.index(HASH)]
    shown = dict.fromkeys([*names, TIME, *metrics])
    shown |= dict.fromkeys(each for each in headings if each.endswith(_PERCENT))
    shown |= dict.fromkeys([DIGEST])
    table = TextTable(text_columns(*map(_heading, shown)), _STYLE)
    count = len(columns[TIME])
    first = count if count <= _MOST_ROWS else _FIRST
    for row in range(first):
        _add_row(table, columns, shown, row)
    if first < count:
        table.row("…", *[""] * (len(shown) - 1))
        for row in range(count - _LAST, count):
            _add_row(table, columns, shown, row)
    return table


def _add_row(table: TextTable, columns: Columns, shown: Mapping[str, None], row: int) -> None:
    fault = columns[FAULT][row]
    headings = list(columns)
    names = headings[: headings.index(HASH)]
    # A value of a parameter as it was written: rounded, two of them could look the same.
    cells = [
        plain(columns[name][row]) if name in names else _cell(name, columns[name][row])
        for name in shown
    ]
    table.row(*cells, faulty=fault is not None)


def _heading(name: str) -> str:
    return name.removesuffix(_PERCENT).replace("_", "\n") + "\n%" if _PERCENT in name else name


def _cell(name: str, cell: Cell) -> str:
    if name == DIGEST:
        return str(cell)[:16] if cell is not None else "fault"
    if isinstance(cell, float):
        if name.endswith(_PERCENT):
            return f"{cell:.1f}"
        return f"{cell:,.3f}" if not 0 < abs(cell) < 1 else f"{cell:.4g}"
    return "" if cell is None else plain(cell)


def best_and_worst(columns: Columns, metrics: Mapping[str, Quantity]) -> Iterator[str]:
    """The points with the best and the worst value of each metric."""
    for name, quantity in metrics.items():
        rows = quantity.rows(range(len(columns[name])))
        for label, row in (("best", quantity.best(rows)), ("worst", quantity.worst(rows))):
            text = f"{name} {_cell(name, columns[name][row])} at {point_text(columns, row)}"
            yield _line(label, text)


def point_text(columns: Columns, row: int) -> str:
    """A point by its parameters: `ucie.bw_gbs=64 --size=256`."""
    headings = list(columns)
    names = headings[: headings.index(HASH)]
    return " ".join(f"{name}={plain(columns[name][row])}" for name in names)


def fault_lines(columns: Columns) -> Iterator[str]:
    """The number of faults, and a line for each."""
    faults = [(row, fault) for row, fault in enumerate(columns[FAULT]) if fault is not None]
    if not faults:
        return
    yield f"{len(faults)} FAULT{'S' if len(faults) > 1 else ''} of {len(columns[FAULT])} points"
    for row, fault in faults[:_MOST_FAULTS]:
        yield f"{point_text(columns, row)}: {fault}"
    if len(faults) > _MOST_FAULTS:
        yield f"and {len(faults) - _MOST_FAULTS} more, in the column `{FAULT}`"


def file_lines(files: Sequence[Path]) -> Iterator[str]:
    """The files of the sweep."""
    for number, file in enumerate(files):
        yield _line("" if number else "files", str(file))


def _line(label: str, text: str) -> str:
    return f"{label:<{_LABEL_COLUMNS}}{text}"
