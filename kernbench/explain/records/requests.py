"""Finds the step of a program that requested each operation of an engine of a PE.

It is the step whose command was issued at that moment. Other operations belong to a command that
was issued before (tiles of a product, slots of a message in the background): theirs is the step in
which the program then is. Where several hardware threads of the PE run a program, messages are
those of collectives and transfers, and all else is of the kernels.
"""

import numpy as np

from kernbench.explain.records.columns import Columns, Mask, Numbers, Texts
from runtime.core.run_tables import NONE

KERNELS = "kernels"
"""The hardware thread of launched kernels."""
_MESSAGES = ("ipcq", "arrival")


def is_of_message(name: str) -> bool:
    """Whether operations of this name move messages between PEs."""
    return name.startswith(_MESSAGES)


def requesting_steps(ops: Columns, programs: Columns, steps: Columns) -> Numbers:
    """The row of the step of every operation, -1 where no program of its PE requested it."""
    requesting = np.full(len(ops), NONE, np.int64)
    row_of_program = np.full(int(programs["program"].max(initial=0)) + 1, NONE, np.int64)
    row_of_program[programs["program"]] = np.arange(len(programs))
    known = np.flatnonzero(steps["program"] < len(row_of_program))
    of_step = row_of_program[steps["program"][known]]
    pe_of_step = _pe(programs["cube"], programs["pe"])[of_step]
    in_kernel = programs.text("thread").equal(KERNELS)[of_step]
    pe_of_op = _pe(ops["cube"], ops["pe"])
    of_message = ops.text("name").matching(is_of_message)
    for pe in np.unique(pe_of_op[ops["pe"] != NONE]):
        rows, here = np.flatnonzero(pe_of_op == pe), pe_of_step == pe
        if not here.any():
            continue
        kernels, others = known[here & in_kernel], known[here & ~in_kernel]
        requested_ps, is_message = ops["requested_ps"][rows], of_message[rows]
        for order, chosen in (((others, kernels), ~is_message), ((kernels, others), is_message)):
            requesting[rows[chosen]] = _requesting(requested_ps[chosen], steps, known[here], order)
    return requesting


def lines_of_operations(ops: Columns, programs: Columns, steps: Columns) -> Texts:
    """The line of source of the step that requested an operation, empty where none did."""
    lines = steps.text("line")
    rows = requesting_steps(ops, programs, steps)
    codes = np.full(len(ops), len(lines.values), np.int32)
    requested = rows != NONE
    codes[requested] = lines.codes[rows[requested]]
    return Texts(codes, (*lines.values, ""))


def _requesting(
    requested_ps: Numbers, steps: Columns, every: Numbers, threads: tuple[Numbers, ...]
) -> Numbers:
    """The step that made each request; of several threads that lasted then, the last."""
    requesting, _ = _last(requested_ps, steps["begin_ps"], every)
    for candidates in threads:
        step, is_there = _last(requested_ps, steps["begin_ps"], candidates)
        # A step that ended before the request cannot have made it.
        lasts = is_there & (steps["end_ps"][step] >= requested_ps)
        requesting = np.where(lasts, step, requesting)
    issued, is_there = _last(requested_ps, steps["issued_ps"], every)
    return np.where(is_there & (steps["issued_ps"][issued] == requested_ps), issued, requesting)


def _last(times_ps: Numbers, of_rows: Numbers, rows: Numbers) -> tuple[Numbers, Mask]:
    """The last of the rows that is not later than each time, and whether there is one."""
    if not len(rows):
        return np.zeros(len(times_ps), np.int64), np.zeros(len(times_ps), np.bool_)
    ordered = rows[np.argsort(of_rows[rows], kind="stable")]
    last = np.searchsorted(of_rows[ordered], times_ps, side="right") - 1
    return ordered[np.maximum(last, 0)], last >= 0


def _pe(cubes: Numbers, pes: Numbers) -> Numbers:
    """One number for a PE; `NONE` for what is not of a PE."""
    return np.where(pes == NONE, NONE, (cubes.astype(np.int64) << 16) + pes)
