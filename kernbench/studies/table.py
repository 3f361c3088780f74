"""Prints the rows of a study as a table on the terminal."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table

MIN_WIDTH = 300
"""Least width of a table in columns: on a narrower terminal its lines wrap, none is cut off."""


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
    """Print a line for each row, red if it has faults, and an empty line after each `group`.

    Cells are aligned right, or left if the heading begins with `<`, which is not printed.
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


def ns(ps: float) -> str:
    """Picoseconds as nanoseconds, with one decimal."""
    return f"{ps / 1000:,.1f}"
