"""Finds rows of the tables of a SIP by program, PE, command and time."""

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernbench.explain.records import Columns, RunRecords
from kernbench.explain.records.issuing_steps import issuing_steps
from runtime.core.run_tables import COMMANDS, NONE, OPS, PROGRAMS, STEPS

Rows = NDArray[np.int64]


class Groups:
    """The rows of a table by a key, and within it in the order of `times`."""

    def __init__(self, keys: NDArray[Any], times: NDArray[Any]) -> None:
        # Tables are nearly in the order of their ends, which a stable sort profits from.
        order = np.argsort(times, kind="stable")
        order = order[np.argsort(keys[order], kind="stable")]
        self._order, self._times = order, times[order]
        # A bisection in a view or a list is ten times as fast as one of numpy.
        self._keys = keys[order].data
        self._rows: dict[int, tuple[list[int], list[int]]] = {}

    def of(self, key: int) -> tuple[list[int], list[int]]:
        """The rows of a key and their times, in ascending order."""
        rows = self._rows.get(key)
        if rows is None:
            begin = bisect_left(self._keys, key)
            end = bisect_right(self._keys, key, begin)
            rows = self._order[begin:end].tolist(), self._times[begin:end].tolist()
            self._rows[key] = rows
        return rows

    def first_at_or_after(self, key: int, time_ps: int) -> int:
        """The first row of a key with that time or a later one, -1 for none."""
        rows, times = self.of(key)
        index = bisect_left(times, time_ps)
        return rows[index] if index < len(rows) else NONE

    def at(self, key: int, time_ps: int) -> list[int]:
        """The rows of a key with exactly that time, the last first."""
        rows, times = self.of(key)
        begin = bisect_left(times, time_ps)
        end = bisect_right(times, time_ps, begin)
        return rows[begin:end][::-1]

    def last(self, key: int) -> int:
        """The row of a key with the latest time, -1 for none."""
        rows, _ = self.of(key)
        return rows[-1] if rows else NONE


class SipIndex:
    """The tables of a SIP with the orders in which the critical path searches them."""

    def __init__(self, records: RunRecords, sip: int) -> None:
        self.sip = sip
        self.ops: Columns = records.table(OPS, sip)
        self.programs: Columns = records.table(PROGRAMS, sip)
        self.steps: Columns = records.table(STEPS, sip)
        self.commands: Columns = records.table(COMMANDS, sip)

    @cached_property
    def program_rows(self) -> NDArray[np.int64]:
        """The row of each program by its number."""
        return _rows_by_number(self.programs["program"])

    @cached_property
    def command_rows(self) -> NDArray[np.int64]:
        """The row of each command by its number."""
        return _rows_by_number(self.commands["command"])

    @cached_property
    def steps_by_end(self) -> Groups:
        """The steps of each program by their ends."""
        return Groups(self.steps["program"], self.steps["end_ps"])

    @cached_property
    def programs_of_command(self) -> Groups:
        """The kernels of each command by their ends."""
        return Groups(self.programs["command"], self.programs["end_ps"])

    @cached_property
    def ops_of_pe(self) -> Groups:
        """The operations of each PE by their ends."""
        return Groups(place(self.ops["cube"], self.ops["pe"]), self.ops["end_ps"])

    @cached_property
    def commands_by_end(self) -> Groups:
        """All commands, with the key 0, by their ends."""
        ends = self.commands["end_ps"]
        return Groups(np.zeros(len(ends), np.int64), ends)

    def step_of(self, program: int, time_ps: int) -> int:
        """The step of a program that ends at a time or lasts then, -1 for none."""
        begins = self.steps["begin_ps"]
        # Steps without duration end at the same time as the step before them.
        for row in self.steps_by_end.at(program, time_ps):
            if begins[row] < time_ps:
                return row
        row = self.steps_by_end.first_at_or_after(program, time_ps + 1)
        return row if row != NONE and begins[row] < time_ps else NONE

    def issuing_step(self, op: int) -> int:
        """The step whose call has issued an operation, or -1."""
        return self._issuing.item(op)

    @cached_property
    def _issuing(self) -> Rows:
        return issuing_steps(self.ops, self.steps)

    def requesting_step(self, op: int, time_ps: int) -> int:
        """The step at a time, or that ends then, of the program that has issued an operation; -1
        for none.
        """
        step = self.issuing_step(op)
        return NONE if step == NONE else self.step_of(self.steps["program"].item(step), time_ps)

    def last_at_barrier(self, program: int, step: int) -> tuple[int, int]:
        """The program of the launch of `program` that came last to the barrier of a step, and its
        step there.
        """
        command = self.programs["command"].item(self.program_rows.item(program))
        number = bisect_left(self._barriers(program), step)
        # The n-th barrier of a program meets the n-th barrier of every other program of its launch.
        last, latest = (program, step), self.steps["issued_ps"].item(step)
        for row in self.programs_of_command.of(command)[0]:
            other = self.programs["program"].item(row)
            barriers = self._barriers(other)
            if number < len(barriers):
                issued_ps = self.steps["issued_ps"].item(barriers[number])
                if issued_ps > latest:
                    last, latest = (other, barriers[number]), issued_ps
        return last

    def _barriers(self, program: int) -> list[int]:
        """The steps of a program that are barriers, in their order."""
        rows, _ = self.steps_by_end.of(program)
        # The table has the steps in the order of their ends.
        return sorted(row for row in rows if self._is_barrier[row])

    @cached_property
    def _is_barrier(self) -> NDArray[np.bool_]:
        return self.steps.text("operation").equal("barrier")

    def last_step_end_before(self, time_ps: int) -> tuple[int, int]:
        """The latest end of a step before a time, and the program of the step; (0, -1) for none."""
        index = int(np.searchsorted(self._step_ends[0], time_ps)) - 1
        if index < 0 or self._step_ends[0][index] <= 0:
            return 0, NONE
        row = self._step_ends[1][index]
        return self.steps["end_ps"].item(row), self.steps["program"].item(row)

    @cached_property
    def _step_ends(self) -> tuple[NDArray[Any], Rows]:
        order = np.argsort(self.steps["end_ps"], kind="stable")
        return self.steps["end_ps"][order], order


def place(cube: Any, pe: Any) -> Any:
    """One number for the coordinates of a PE in a SIP, or for arrays of them."""
    if isinstance(cube, np.ndarray):
        return cube.astype(np.int32) * 4096 + pe
    return cube * 4096 + pe


def _rows_by_number(numbers: NDArray[Any]) -> NDArray[np.int64]:
    rows = np.full(int(numbers.max(initial=-1)) + 2, NONE, np.int64)
    rows[numbers] = np.arange(len(numbers))
    return rows
