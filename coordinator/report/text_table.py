"""Formats rows of cells as text with aligned columns: the printer of all report tables."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TextIO

_RESET, _BOLD, _RED = "\x1b[0m", "\x1b[1m", "\x1b[31m"


@dataclass(frozen=True)
class TextColumn:
    """A column: its heading, of one or more lines, its alignment, and its least width.

    `gap` is the number of spaces before it where that differs from the gap of the table.
    """

    heading: str
    left: bool = False
    width: int = 0
    gap: int | None = None

    def align(self, cell: str, width: int) -> str:
        """The cell padded to `width` characters."""
        return cell.ljust(width) if self.left else cell.rjust(width)


def text_columns(*headings: str) -> tuple[TextColumn, ...]:
    """Columns of these headings, right-aligned; a heading that begins with `<` is left-aligned."""
    return tuple(
        TextColumn(heading.removeprefix("<"), left=heading.startswith("<")) for heading in headings
    )


@dataclass(frozen=True)
class TextStyle:
    """The characters around the cells. Nothing is cut off: a wide cell widens its column.

    `gap` is the number of spaces between two columns. `heading_marks` and `row_mark` begin the
    lines of the heading and of the rows. With `ruled`, a line of dashes separates the heading
    from the rows; it extends `overhang` characters beyond the last column.
    """

    gap: int = 2
    heading_marks: tuple[str, ...] = ()
    row_mark: str = ""
    ruled: bool = False
    overhang: int = 0


class TextTable:
    """A table that is filled row by row and then formatted as a whole."""

    def __init__(self, columns: Sequence[TextColumn], style: TextStyle) -> None:
        self._columns, self._style = tuple(columns), style
        self._gaps = [style.gap if each.gap is None else each.gap for each in columns]
        self._gaps[0] = 0
        self._rows: list[tuple[str, ...]] = []
        self._faulty: set[int] = set()
        self._group_ends: set[int] = set()

    def row(self, *cells: str, faulty: bool = False) -> None:
        """Append a row with one cell for each column; on a terminal, a faulty row is red."""
        if len(cells) != len(self._columns):
            raise ValueError(f"a row of {len(cells)} cells in a table of {len(self._columns)}")
        if faulty:
            self._faulty.add(len(self._rows))
        self._rows.append(cells)

    def end_group(self) -> None:
        """Put an empty line after the rows so far, if more rows follow."""
        self._group_ends.add(len(self._rows) - 1)

    def lines(self, *, coloured: bool = False) -> Iterator[str]:
        """The heading and the rows, without spaces at the ends of lines."""
        headings = self._heading_lines()
        widths = [
            max(column.width, *map(len, cells))
            for column, cells in zip(
                self._columns, zip(*headings, *self._rows, strict=True), strict=True
            )
        ]
        marks = self._style.heading_marks
        for heading, mark in zip_longest(headings, marks[: len(headings)], fillvalue=""):
            yield _styled(self._line(tuple(heading), widths, mark), _BOLD, applies=coloured)
        if self._style.ruled:
            yield "─" * (sum(widths) + sum(self._gaps) + self._style.overhang)
        for number, row in enumerate(self._rows):
            line = self._line(row, widths, self._style.row_mark)
            yield _styled(line, _RED, applies=coloured and number in self._faulty)
            if number in self._group_ends and number + 1 < len(self._rows):
                yield ""

    def _heading_lines(self) -> list[tuple[str, ...]]:
        """The headings from top to bottom; a heading with fewer lines than others stands below."""
        parts = [column.heading.split("\n") for column in self._columns]
        height = max(map(len, parts))
        padded = [[""] * (height - len(part)) + part for part in parts]
        return list(zip(*padded, strict=True))

    def _line(self, cells: tuple[str, ...], widths: Sequence[int], mark: str) -> str:
        aligned = (
            " " * gap + column.align(cell, width)
            for column, gap, cell, width in zip(
                self._columns, self._gaps, cells, widths, strict=True
            )
        )
        return f"{mark}{''.join(aligned)}".rstrip()


def print_table(table: TextTable, title: str = "", file: TextIO | None = None) -> None:
    """Print the title and the table, then an empty line, with colours where `file` is a terminal.

    `file` is the standard output by default.
    """
    stream = sys.stdout if file is None else file
    # https://no-color.org: the variable counts where it is set and not empty.
    coloured = stream.isatty() and not os.environ.get("NO_COLOR")
    if title:
        print(_styled(title, _BOLD, applies=coloured), file=stream)
    print(*table.lines(coloured=coloured), "", sep="\n", file=stream)


def _styled(text: str, style: str, *, applies: bool) -> str:
    return f"{style}{text}{_RESET}" if applies and text else text
