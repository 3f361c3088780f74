"""The step that issued an operation is found by its number."""

from pathlib import Path

import pytest

from kernbench.explain.records import Columns, open_run
from kernbench.explain.records.issuing_steps import issuing_steps, lines_of_operations
from runtime.core.run_tables import OPS, STEPS
from tests.support.run_tables import op, step, tables, write_run

PE = {"cube": 0, "pe": 1}
STEP_ROWS = (
    # In the order of their ends.
    step(1, "composite", 10, 12, step=1, line="k.py:1"),
    step(2, "send_async", 30, 32, step=7, line="ring.py:1"),
    step(1, "wait", 12, 90, step=3, line="k.py:2"),
)
NO_ROW = 5


def recorded(tmp_path: Path, *numbers: int) -> tuple[Columns, Columns]:
    """Operations that steps with these numbers have issued, and the steps."""
    ops = [op("pe_dma", "load", 40, 50, step=number, **PE) for number in numbers]
    records = open_run(write_run(tmp_path / "run", [tables(ops, (), STEP_ROWS)], 100))
    return records.table(OPS, 0), records.table(STEPS, 0)


@pytest.mark.parametrize(
    ("number", "row", "line"),
    [
        (1, 0, "k.py:1"),
        (7, 1, "ring.py:1"),
        (3, 2, "k.py:2"),
        # Of the host; of a call that never ended, before, between and behind the others.
        (-1, -1, ""),
        (0, -1, ""),
        (NO_ROW, -1, ""),
        (8, -1, ""),
    ],
)
def test_an_operation_has_the_step_with_its_number_and_the_line_of_that(
    tmp_path: Path, number: int, row: int, line: str
):
    ops, steps = recorded(tmp_path, number)
    assert issuing_steps(ops, steps).tolist() == [row]
    assert lines_of_operations(ops, steps)[0] == line


def test_operations_of_a_run_without_steps_have_none(tmp_path: Path):
    ops, _ = recorded(tmp_path, 1, -1)
    assert issuing_steps(ops, Columns.empty(STEPS)).tolist() == [-1, -1]
