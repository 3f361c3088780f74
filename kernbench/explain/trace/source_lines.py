"""Finds the line of source that caused an operation of an engine of a PE."""

import numpy as np

from kernbench.explain.records.columns import Columns, Texts
from kernbench.explain.records.requests import requesting_steps
from runtime.core.run_tables import NONE


def lines_of_operations(ops: Columns, programs: Columns, steps: Columns) -> Texts:
    """The line of the step that requested an operation, empty where none did."""
    lines = steps.text("line")
    rows = requesting_steps(ops, programs, steps)
    codes = np.full(len(ops), len(lines.values), np.int32)
    requested = rows != NONE
    codes[requested] = lines.codes[rows[requested]]
    return Texts(codes, (*lines.values, ""))
