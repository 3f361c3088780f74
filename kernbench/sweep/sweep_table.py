"""The table of a sweep, read from its CSV alone.

A row is a point. The columns left of `config_hash` are the swept keys and arguments as the user
wrote them; `fault` is empty, or states in a sentence why the point has no other cells.
"""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from runtime.core.errors import UsageError, nearest

HASH, DIGEST, FAULT = "config_hash", "digest", "fault"
_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_TEXTS = (HASH, DIGEST, FAULT)
"""Columns whose cells stay text: a digest may consist of digits."""

Value = int | float | str


@dataclass(frozen=True)
class PointRow:
    """A point: the values of its keys, and its cells from `config_hash` on; None is empty."""

    keys: tuple[Value, ...]
    cells: tuple[Value | None, ...]
    fault: str


@dataclass(frozen=True)
class SweepTable:
    """The points of a sweep in the order of the CSV.

    `keys` are the swept keys and arguments, `columns` all other headings, from `config_hash` on.
    """

    keys: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[PointRow, ...]

    def values(self, key: str) -> tuple[Value, ...]:
        """The distinct values of a key: numbers ascending, words in the order of the rows."""
        index = self.keys.index(key)
        distinct = dict.fromkeys(row.keys[index] for row in self.rows)
        numbers = [value for value in distinct if not isinstance(value, str)]
        return tuple(sorted(numbers)) if len(numbers) == len(distinct) else tuple(distinct)

    def column(self, name: str) -> tuple[Value | None, ...]:
        """The cells of a key or of a column, one a row; raises `UsageError` for another name."""
        if name in self.keys:
            index = self.keys.index(name)
            return tuple(row.keys[index] for row in self.rows)
        if name in self.columns:
            index = self.columns.index(name)
            return tuple(row.cells[index] for row in self.rows)
        raise UsageError(
            f"metric {name!r} is no column of the sweep{nearest(name, (*self.columns, *self.keys))}"
        )

    @property
    def is_grid(self) -> bool:
        """Whether the points are all combinations of the values; those of a zip sweep are not."""
        return len(self.rows) == prod(len(self.values(key)) for key in self.keys)


def read(path: Path) -> SweepTable:
    """The table in a CSV file; raises `UsageError` for a file that is not a sweep's, in a line."""
    lines = _lines(path)
    if not lines:
        raise UsageError(f"{path} is empty, not the CSV of a sweep")
    _, headings = lines[0]
    problem = _problem_of(headings)
    if problem:
        raise UsageError(f"{path} is not the CSV of a sweep: {problem}")
    rows = tuple(_rows(path, headings, lines[1:]))
    if not rows:
        raise UsageError(f"{path} has headings and no points")
    swept = headings.index(HASH)
    return SweepTable(tuple(headings[:swept]), tuple(headings[swept:]), rows)


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    """The lines that are not empty, each with its number."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, strict=True)
            return [(reader.line_num, line) for line in reader if line]
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path} is not a CSV file: {error}") from error


def _problem_of(headings: Sequence[str]) -> str:
    """Why these are not the headings of a sweep, or nothing."""
    absent = [name for name in (HASH, FAULT) if name not in headings]
    if absent:
        return f"it has no column {absent[0]}"
    if headings[0] == HASH:
        return f"it has no swept keys, which are the columns left of {HASH}"
    doubled = [name for name in headings if headings.count(name) > 1]
    return f"it has two columns {doubled[0]}" if doubled else ""


def _rows(
    path: Path, headings: Sequence[str], lines: Sequence[tuple[int, list[str]]]
) -> Iterator[PointRow]:
    swept, fault = headings.index(HASH), headings.index(FAULT)
    first_lines: dict[tuple[Value, ...], int] = {}
    for number, line in lines:
        if len(line) != len(headings):
            raise UsageError(
                f"{path} line {number} has {len(line)} cells, its headings {len(headings)}"
            )
        keys = tuple(map(_value, line[:swept]))
        first = first_lines.setdefault(keys, number)
        if first != number:
            raise UsageError(f"{path} lines {first} and {number} are the same point")
        cells = tuple(
            (cell if name in _TEXTS else _value(cell)) if cell else None
            for name, cell in zip(headings[swept:], line[swept:], strict=True)
        )
        yield PointRow(keys, cells, line[fault])


def _value(text: str) -> Value:
    # Not `float(text)` alone, which accepts `nan`, `infinity` and `1_000`.
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
