"""The rows of a study as a table on the terminal, and whether all is well with them."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

MIN_WIDTH = 300
"""Columns a table may have; where the output has fewer, its lines are longer, and nothing is cut off."""


class _Row(Protocol):
    @property
    def faults(self) -> Sequence[str]: ...


R = TypeVar("R", bound=_Row)


def print_table(
    columns: Sequence[str],
    rows: Sequence[R],
    cells: Callable[[R], Sequence[str]],
    group: Callable[[R], object],
) -> None:
    """Print a line for each row, red where it has faults, with a rule behind the last one of each `group`.

    Cells stand at the right of their columns, or at the left where the heading begins with `<`, which is not printed.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in columns:
        justify = "left" if column.startswith("<") else "right"
        table.add_column(column.removeprefix("<"), justify=justify, no_wrap=True)
    for row, following in zip(rows, (*rows[1:], None), strict=True):
        last = following is None or group(following) != group(row)
        table.add_row(*cells(row), style="red" if row.faults else "", end_section=last)
    console = Console(highlight=False)
    console.width = max(console.width, MIN_WIDTH)
    with console.capture() as drawn:
        console.print(table)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()), end="\n\n")


def verdict(rows: Sequence[R], name: Callable[[R], str], well: str) -> list[str]:
    """The line `well` where no row has faults, else how many there are and a line for each, behind the name of its row."""
    faults = [f"{name(row)}: {fault}" for row in rows for fault in row.faults]
    return [f"{len(faults)} FAULTS", *faults] if faults else [well]


def ns(ps: float) -> str:
    """Picoseconds as nanoseconds, as all tables have them."""
    return f"{ps / 1000:,.1f}"
