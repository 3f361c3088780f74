"""Rows of steps: their numbers, and the line of a kernel."""

from typing import Any

from runtime.core.run_tables import STEPS
from tests.support.interpreted import interpreted
from tests.support.recorded import Recorded

StepRows = interpreted("sip_node.chip.records.step_rows").StepRows


def line_of_this(rows: Any) -> int:
    line: int = rows.kernel_line()
    return line


def test_steps_are_numbered_from_0():
    rows = StepRows(Recorded().recorder)
    assert [rows.new_step() for _ in range(3)] == [0, 1, 2]


def test_the_line_of_a_kernel_is_that_of_the_caller_however_often_it_is_searched():
    recorded = Recorded()
    rows = StepRows(recorded.recorder)
    lines = [line_of_this(rows) for _ in range(2)]
    assert lines[0] == lines[1] != rows.kernel_line()
    columns = [column.name for column in STEPS.columns]
    values = [lines[0] if name == "line" else 0 for name in columns]
    rows.add(*values)
    (row,) = recorded.rows(STEPS)
    file, _, number = row["line"].rpartition(":")
    assert file.endswith("test_step_rows.py")
    assert int(number) == line_of_this.__code__.co_firstlineno + 1
