"""The printer of report tables: alignment, groups, rules, colours."""

import io

import pytest

from coordinator.report.text_table import (
    TextColumn,
    TextStyle,
    TextTable,
    print_table,
    text_columns,
)

RULED = TextStyle(ruled=True, overhang=1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def grouped() -> TextTable:
    table = TextTable(text_columns("<name", "value\n(ns)"), RULED)
    table.row("a", "1.0")
    table.row("along", "10.0", faulty=True)
    table.end_group()
    table.row("b", "100.0")
    table.end_group()
    return table


def test_names_are_left_aligned_numbers_right_aligned_and_groups_apart():
    assert list(grouped().lines()) == [
        "       value",
        "name    (ns)",
        "─────────────",
        "a        1.0",
        "along   10.0",
        "",
        "b      100.0",
    ]


def test_a_column_has_its_least_width_and_widens_for_its_cells():
    columns = (TextColumn("x", width=4), TextColumn("#y", width=3, gap=1))
    table = TextTable(columns, TextStyle(gap=2, heading_marks=("#",), row_mark=" "))
    table.row("1", "2")
    assert list(table.lines()) == ["#   x  #y", "    1   2"]
    table.row("123456", "2")
    assert list(table.lines()) == ["#     x  #y", "      1   2", " 123456   2"]


def test_a_table_without_rows_has_its_heading():
    table = TextTable(text_columns("<a", "b"), TextStyle(ruled=True))
    assert list(table.lines()) == ["a  b", "────"]


def test_nothing_is_cut_off():
    table = TextTable(text_columns("<a"), TextStyle())
    table.row("x" * 1000)
    assert list(table.lines())[1] == "x" * 1000


def test_a_row_with_too_few_cells_is_refused():
    with pytest.raises(ValueError, match="a row of 1 cells in a table of 2"):
        TextTable(text_columns("a", "b"), TextStyle()).row("1")


def test_into_a_file_there_are_no_colours_and_an_empty_line_follows():
    file = io.StringIO()
    print_table(grouped(), "title", file)
    assert file.getvalue().splitlines() == ["title", *grouped().lines(), ""]


def test_on_a_terminal_the_heading_is_bold_and_a_faulty_row_red(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    print_table(grouped(), "title", terminal)
    lines = terminal.getvalue().splitlines()
    assert lines[0] == "\x1b[1mtitle\x1b[0m"
    assert lines[2] == "\x1b[1mname    (ns)\x1b[0m"
    assert [line for line in lines if "\x1b[31m" in line] == ["\x1b[31malong   10.0\x1b[0m"]


def test_colours_can_be_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    print_table(grouped(), "", terminal)
    assert "\x1b" not in terminal.getvalue()
