"""The differences of two runs, by parts and along their critical paths."""

from pathlib import Path

import pytest

from kernbench.explain.records import open_run
from kernbench.explain.why.compare import Change, changes, compare, comparison_lines
from kernbench.explain.why.explanation import Explanation, explain
from runtime.core.errors import UsageError
from tests.support.hand_made_runs import a_slot_and_its_credit, one_kernel
from tests.support.run_tables import write_run


@pytest.fixture
def one(tmp_path: Path) -> Explanation:
    return explain(open_run(write_run(tmp_path / "one", [one_kernel()], 1000)))


@pytest.fixture
def other(tmp_path: Path) -> Explanation:
    return explain(open_run(write_run(tmp_path / "other", a_slot_and_its_credit(), 1040)))


def test_changes_are_sorted_by_their_size(one: Explanation):
    found = changes({"a": 5, "b": 9, "c": 4}, {"a": 6, "b": 1, "d": 4})
    assert found == [Change("b", 9, 1), Change("c", 4, 0), Change("d", 0, 4), Change("a", 5, 6)]


def test_the_changes_of_parts_kinds_lines_and_components_sum_to_that_of_the_run(
    one: Explanation, other: Explanation
):
    found = compare(one, other)
    assert found.change_ps == 40
    for each in (found.parts, found.kinds, found.lines, found.components):
        assert sum(change.change_ps for change in each) == 40


def test_a_run_compared_with_itself_has_no_changes(one: Explanation):
    found = compare(one, one)
    assert {each.change_ps for each in (*found.parts, *found.lines)} == {0}


def test_the_comparison_is_printed(one: Explanation, other: Explanation):
    found = compare(one, other)
    lines = list(comparison_lines(found))
    assert lines[1] == "# 1.000 ns -> 1.040 ns: +0.040 ns, 1.040 times as long"
    assert lines[4].split() == ["memory", "stall", "0.650", "0.000", "-0.650"]


def test_a_run_that_failed_is_not_explained(tmp_path: Path):
    directory = write_run(tmp_path / "run", [one_kernel()], 1000, error="deadlock: x\ny")
    with pytest.raises(UsageError, match=r"the run failed, .* that ended: deadlock: x$"):
        explain(open_run(directory))
