"""Prints the rows of a study as a table on the terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from coordinator.report.text_table import TextStyle, TextTable, text_columns
from coordinator.report.text_table import print_table as print_text_table


class PrintedRow(Protocol):
    """A row of the table; rows with faults are red."""

    @property
    def faults(self) -> Sequence[str]:
        """A sentence for each check that failed."""
        ...


R = TypeVar("R", bound=PrintedRow)


@dataclass(frozen=True)
class RowTable(Generic[R]):
    """The table of a study: headings as for `print_table`, each with its cell, and the group of a
    row.
    """

    columns: Sequence[tuple[str, Callable[[R], str]]]
    group: Callable[[R], object]

    def print(self, rows: Sequence[R]) -> None:
        """Print a line for each row."""
        headings, cells = zip(*self.columns, strict=True)
        print_table(headings, rows, lambda row: [cell(row) for cell in cells], self.group)


def print_table(
    columns: Sequence[str],
    rows: Sequence[R],
    cells: Callable[[R], Sequence[str]],
    group: Callable[[R], object],
) -> None:
    """Print a line for each row, red if it has faults, and an empty line after each `group`.

    Cells are aligned right, or left if the heading begins with `<`, which is not printed.
    """
    table = TextTable(text_columns(*columns), TextStyle(ruled=True, overhang=1))
    previous: object = None
    for number, row in enumerate(rows):
        # After the previous row, once the next one shows that its group is complete.
        if number and group(row) != previous:
            table.end_group()
        table.row(*cells(row), faulty=bool(row.faults))
        previous = group(row)
    print_text_table(table)


def shown_error(error: float | None) -> str:
    """The error of a result, or that its run had no data."""
    return "no data" if error is None else f"{error:.1e}"


def ns(ps: float) -> str:
    """Picoseconds as nanoseconds with one decimal."""
    return f"{ps / 1000:,.1f}"
