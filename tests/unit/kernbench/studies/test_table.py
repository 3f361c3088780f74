"""The table that all studies print."""

from dataclasses import dataclass

import pytest

from kernbench.studies.table import print_table


@dataclass(frozen=True)
class NamedValue:
    name: str
    value: str
    faults: tuple[str, ...] = ()


def lines_of(rows: list[NamedValue], capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_table(
        ("<name", "value\n(ns)"), rows, lambda row: [row.name, row.value], lambda row: row.name[0]
    )
    return capsys.readouterr().out.splitlines()


def test_text_is_aligned_left_numbers_right_and_groups_are_separated(
    capsys: pytest.CaptureFixture[str],
):
    heading, units, _, *lines = lines_of(
        [NamedValue("a", "1.0"), NamedValue("along", "10.0"), NamedValue("b", "100.0")], capsys
    )
    assert (heading, units) == ("       value", "name    (ns)")
    assert lines == ["a        1.0", "along   10.0", "", "b      100.0", ""]


def test_nothing_is_cut_off(capsys: pytest.CaptureFixture[str]):
    assert "x" * 250 in lines_of([NamedValue("x" * 250, "1")], capsys)[3]
