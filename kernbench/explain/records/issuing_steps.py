"""Finds the step of a program whose call has issued each operation of a SIP.

Operations name it by its number. Numbers are those of all steps that have begun, and the table has
those that have ended: a step in which a program was blocked when its run failed has no row.
"""

import numpy as np

from kernbench.explain.records.columns import Columns, Numbers, Texts
from runtime.core.run_tables import NONE


def issuing_steps(ops: Columns, steps: Columns) -> Numbers:
    """The row of the step of every operation, -1 where no step with a row has issued it."""
    issuing = ops["step"]
    if not len(steps):
        return np.full(len(ops), NONE, np.int64)
    order: Numbers = np.argsort(steps["step"], kind="stable")
    numbers = steps["step"][order]
    place = np.minimum(np.searchsorted(numbers, issuing), len(numbers) - 1)
    return np.where(numbers[place] == issuing, order[place], NONE)


def lines_of_operations(ops: Columns, steps: Columns) -> Texts:
    """The line of source of the call that issued each operation, empty where none did."""
    lines, rows = steps.text("line"), issuing_steps(ops, steps)
    codes = np.full(len(ops), len(lines.values), np.int32)
    issued = rows != NONE
    codes[issued] = lines.codes[rows[issued]]
    return Texts(codes, (*lines.values, ""))
