"""The section of the page that the comparison writes."""

from pathlib import Path

import pytest

from kernbench.measure.host_speed.bench_page import (
    BEGIN,
    END,
    BenchSection,
    machine_lines,
    write_between_markers,
)
from runtime.core.errors import UsageError

ROOT = Path(__file__).parents[5]


def test_a_section_has_the_machine_and_both_tables() -> None:
    section = BenchSection("on a machine", [("r", "1 process", *"12345678")], [("PHOLD", "0.9")])
    lines = section.text().splitlines()
    assert lines[0] == "on a machine"
    assert "| r | 1 process | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 |" in lines
    # Headings, the rule below them and rows have as many cells.
    assert {line.count("|") for line in lines[2:5]} == {11}
    assert lines[-1] == "| PHOLD | 0.9 |"


def test_only_what_is_between_the_markers_is_replaced(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write_between_markers(page, "new")
    assert page.read_text() == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_a_page_without_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing\n")
    with pytest.raises(UsageError, match="the page has no lines <!-- bench: begin -->"):
        write_between_markers(page, "new")


def test_the_page_of_the_documentation_has_the_markers() -> None:
    page = (ROOT / "docs" / "internals" / "speed.md").read_text("utf-8")
    assert page.count(BEGIN) == page.count(END) == 1


def test_a_result_names_versions_and_commit() -> None:
    lines = machine_lines(ROOT, 3)
    assert "medians of 3 rounds" in lines
    assert "simpy" in lines
    assert all(len(line) <= 100 for line in lines.splitlines())
