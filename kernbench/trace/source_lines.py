"""Finds the line of source that caused an operation of an engine of a PE.

An operation is requested by a step of a program on its PE: by the one whose command was issued at
that moment, else by the last step that began before. The slots of a message in the background have
the line at which the program then is.
"""

import numpy as np

from kernbench.run_records.columns import Columns, Numbers, Texts
from runtime.core.run_tables import NONE


def lines_of_operations(ops: Columns, programs: Columns, steps: Columns) -> Texts:
    """The line of every operation, empty where no program of its PE requested it."""
    at_of_steps = _pe_of_steps(programs, steps)
    at_of_ops = _pe(ops["cube"], ops["pe"])
    lines = steps.text("line")
    codes = np.full(len(ops), len(lines.values), np.int32)
    for pe in np.unique(at_of_ops[ops["pe"] != NONE]):
        rows, candidates = np.flatnonzero(at_of_ops == pe), np.flatnonzero(at_of_steps == pe)
        if len(candidates):
            codes[rows] = lines.codes[_requesting(ops["requested_ps"][rows], steps, candidates)]
    return Texts(codes, (*lines.values, ""))


def _requesting(requested_ps: Numbers, steps: Columns, candidates: Numbers) -> Numbers:
    """Of each request the row of the step that made it."""
    issued = candidates[np.argsort(steps["issued_ps"][candidates], kind="stable")]
    at = np.searchsorted(steps["issued_ps"][issued], requested_ps, side="right") - 1
    exact = (at >= 0) & (steps["issued_ps"][issued[at]] == requested_ps)
    begun = candidates[np.argsort(steps["begin_ps"][candidates], kind="stable")]
    last = np.searchsorted(steps["begin_ps"][begun], requested_ps, side="right") - 1
    return np.where(exact, issued[at], begun[np.maximum(last, 0)])


def _pe_of_steps(programs: Columns, steps: Columns) -> Numbers:
    most = int(programs["program"].max(initial=0)) + 1
    of_program = np.full(most, NONE, np.int64)
    of_program[programs["program"]] = _pe(programs["cube"], programs["pe"])
    known = steps["program"] < most
    return np.where(known, of_program[np.where(known, steps["program"], 0)], NONE)


def _pe(cubes: Numbers, pes: Numbers) -> Numbers:
    """One number for a PE; `NONE` for what is not of a PE."""
    return np.where(pes == NONE, NONE, (cubes.astype(np.int64) << 16) + pes)
