"""How checks are shown: a table for each group on the terminal, all of them as CSV."""

import csv
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from kernbench.validate.check import GROUPS, Check, Comparison
from kernbench.validate.plan import missed

COLUMNS = (
    "id",
    "says",
    "formula",
    "expected",
    "measured",
    "deviation",
    "tolerance",
    "unit",
    "verdict",
)
MIN_WIDTH = 300
"""Columns a table may have; where the output has fewer, its lines are longer, and nothing is cut off."""


def print_tables(checks: Iterable[Check]) -> None:
    """The checks in a table for each group."""
    for group, members in groupby(checks, key=lambda check: check.id[0]):
        print(f"{group}  {GROUPS[group]}")
        _print(_table(members))


def summary(checks: Sequence[Check]) -> str:
    """`142 checks: all within their tolerance`, or which are not."""
    wrong = missed(checks)
    if not wrong:
        return f"{len(checks)} checks: all within their tolerance"
    return f"{len(checks)} checks: {len(wrong)} MISSED: {' '.join(check.id for check in wrong)}"


def write_csv(path: Path, checks: Iterable[Check]) -> None:
    """All checks, numbers in full precision."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for check in checks:
            numbers = (check.expected, check.measured, check.deviation, check.tolerance)
            writer.writerow(
                [
                    check.id,
                    check.text,
                    check.formula,
                    *map(repr, numbers),
                    check.unit,
                    check.verdict,
                ]
            )


def _table(checks: Iterable[Check]) -> Table:
    table = Table(*COLUMNS, box=box.SIMPLE_HEAD, pad_edge=False)
    for column in table.columns:
        column.no_wrap = True
    for check in checks:
        verdict = check.verdict if check.passed else f"[bold red]{check.verdict}[/]"
        bound = "<= " if check.comparison is Comparison.AT_MOST else ""
        table.add_row(
            check.id,
            check.text,
            check.formula,
            bound + _number(check.expected),
            _number(check.measured),
            _deviation(check),
            f"{check.tolerance:.1%}" if check.tolerance else "exact",
            check.unit,
            verdict,
        )
    return table


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def _deviation(check: Check) -> str:
    if check.comparison is Comparison.AT_MOST and check.passed:
        return "-"
    if not check.expected:
        return _number(check.deviation)
    return f"{check.deviation:+.3%}" if check.deviation else "0"


def _print(table: Table) -> None:
    """A table between empty lines, without the spaces that fill its lines up."""
    console = Console(highlight=False, width=MIN_WIDTH)
    with console.capture() as drawn:
        console.print(table)
    print("\n".join(line.rstrip() for line in drawn.get().rstrip().splitlines()), end="\n\n")
