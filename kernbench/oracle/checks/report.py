"""Presents checks: a table per group on the terminal, all of them as CSV."""

import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from coordinator.report.text_table import TextColumn, TextStyle, TextTable, print_table
from kernbench.oracle.checks.check import GROUPS, Check, Relation
from kernbench.oracle.checks.plan import missed
from runtime.core.output import write_output

COLUMNS = (
    "id",
    "check",
    "formula",
    "expected",
    "measured",
    "deviation",
    "tolerance",
    "unit",
    "verdict",
)
STYLE = TextStyle(gap=3, heading_marks=(" ",), row_mark=" ", ruled=True, overhang=1)


def print_tables(checks: Iterable[Check], titles: Mapping[str, str] = GROUPS) -> None:
    """A table per group, printed when the first check of the next group is known."""
    for group, members in groupby(checks, key=lambda check: check.id[0]):
        # All columns are left-aligned: formulas and numbers of different units do not line up.
        table = TextTable([TextColumn(name, left=True) for name in COLUMNS], STYLE)
        for check in members:
            table.row(*_cells(check), faulty=not check.passed)
        print_table(table, f"{group}  {titles[group]}\n")
        # The groups take minutes together, and a pipe or a file is buffered.
        sys.stdout.flush()


def summary(checks: Sequence[Check]) -> str:
    """`142 checks: all within their tolerance`, or the ids of those which are not."""
    wrong = missed(checks)
    if not wrong:
        return f"{len(checks)} checks: all within their tolerance"
    return f"{len(checks)} checks: {len(wrong)} MISSED: {' '.join(check.id for check in wrong)}"


def write_csv(path: Path, checks: Iterable[Check]) -> None:
    """All checks, with numbers in full precision. Raises `OutputError`."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for check in checks:
        numbers = (check.expected, check.measured, check.deviation, check.tolerance)
        labels = (check.id, check.text, check.formula)
        writer.writerow([*labels, *map(repr, numbers), check.unit, check.verdict])
    write_output(path, text.getvalue().encode())


def _cells(check: Check) -> tuple[str, ...]:
    bound = "<= " if check.relation is Relation.AT_MOST else ""
    return (
        check.id,
        check.text,
        check.formula,
        bound + _number(check.expected),
        _number(check.measured),
        _deviation(check),
        f"{check.tolerance:.1%}" if check.tolerance else "exact",
        check.unit,
        check.verdict,
    )


def _number(value: float) -> str:
    return f"{value:,.4f}".rstrip("0").rstrip(".")


def _deviation(check: Check) -> str:
    if check.relation is Relation.AT_MOST and check.passed:
        return "-"
    if not check.expected:
        return _number(check.deviation)
    return f"{check.deviation:+.3%}" if check.deviation else "0"
