"""The steps of the programs of a launch, in their order, with the class of each."""

from collections.abc import Collection, Mapping, Sequence
from enum import IntEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kernbench.explain.advice.launches import JointLaunch
from kernbench.explain.records import Columns, RunRecords
from kernbench.explain.why.parts import TimePart, parts_of_steps
from runtime.core.run_tables import NONE, OPS, PROGRAMS, STEPS, Cause


class StepClass(IntEnum):
    """The classes of steps by what they do or wait for."""

    COMPUTE = 0
    MEMORY = 1
    MESSAGE = 2
    """A send, a receive, or a wait for one."""
    BARRIER = 3
    OTHER = 4


class PeStep(Struct, frozen=True, gc=False):
    """A step of a kernel; `row` is that of the table, and `op` the operation that released it.

    `requested_ps` is when that operation was requested, `issued_ps` of the step if there is none.
    """

    row: int
    of: StepClass
    begin_ps: int
    issued_ps: int
    end_ps: int
    op: int
    requested_ps: int

    @property
    def time_ps(self) -> int:
        """The time of the step."""
        return self.end_ps - self.begin_ps

    @property
    def is_async_wait(self) -> bool:
        """Whether it waits for an operation that an earlier step has requested."""
        return self.op != NONE and self.requested_ps < self.begin_ps

    @property
    def own_ps(self) -> int:
        """The time without waits for other PEs."""
        if self.of is StepClass.BARRIER:
            return 0
        return self.issued_ps - self.begin_ps if self.of is StepClass.MESSAGE else self.time_ps


class PeProgram(Struct, frozen=True):
    """A program of a launch: the kernel on one PE; `row` is that of the table of its SIP."""

    row: int
    sip: int
    cube: int
    pe: int
    begin_ps: int
    end_ps: int
    steps: tuple[PeStep, ...]

    @property
    def name(self) -> str:
        """The PE."""
        return f"sip{self.sip}.cube{self.cube}.pe{self.pe}"

    @property
    def time_ps(self) -> int:
        """The time of the program."""
        return self.end_ps - self.begin_ps

    @property
    def own_ps(self) -> int:
        """The time without waits for other PEs."""
        return sum(step.own_ps for step in self.steps)

    def phases(self, without: Collection[tuple[int, int]] = ()) -> list[list[PeStep]]:
        """The steps between barriers: one list more than the program has barriers, without those
        in `without`, which are SIPs and rows of steps.
        """
        phases: list[list[PeStep]] = [[]]
        for step in self.steps:
            if step.of is StepClass.BARRIER:
                if (self.sip, step.row) not in without:
                    phases.append([])
            else:
                phases[-1].append(step)
        return phases

    @property
    def barriers(self) -> list[PeStep]:
        """The barriers of the program."""
        return [step for step in self.steps if step.of is StepClass.BARRIER]


class RankSteps:
    """The steps of all kernels of a rank, searched by program."""

    def __init__(self, records: RunRecords, sip: int) -> None:
        self.sip = sip
        self.ops: Columns = records.table(OPS, sip)
        self.programs: Columns = records.table(PROGRAMS, sip)
        self.steps: Columns = records.table(STEPS, sip)
        programs = self.steps["program"]
        self._order = np.lexsort((self.steps["step"], programs))
        self._sorted: NDArray[np.int32] = programs[self._order]
        self._classes = _classes(self.steps, self.ops)

    def of_program(self, row: int) -> PeProgram:
        """The program in a row of the table of programs."""
        programs, steps, ops = self.programs, self.steps, self.ops
        number = programs["program"].item(row)
        first, last = np.searchsorted(self._sorted, (number, number + 1)).tolist()
        rows = self._order[first:last]
        released = steps["released_by"][rows]
        requested = steps["issued_ps"][rows].copy()
        has_op = released != NONE
        requested[has_op] = ops["requested_ps"][released[has_op]]
        columns = (
            rows,
            steps["begin_ps"][rows],
            steps["issued_ps"][rows],
            steps["end_ps"][rows],
            released,
            requested,
        )
        classes: list[int] = self._classes[rows].tolist()
        times: list[list[int]] = [each.tolist() for each in columns]
        return PeProgram(
            row=row,
            sip=self.sip,
            cube=programs["cube"].item(row),
            pe=programs["pe"].item(row),
            begin_ps=programs["begin_ps"].item(row),
            end_ps=programs["end_ps"].item(row),
            steps=tuple(
                PeStep(
                    row=row,
                    of=StepClass(of),
                    begin_ps=begin_ps,
                    issued_ps=issued_ps,
                    end_ps=end_ps,
                    op=op,
                    requested_ps=requested_ps,
                )
                for of, row, begin_ps, issued_ps, end_ps, op, requested_ps in zip(
                    classes, *times, strict=True
                )
            ),
        )

    def line(self, step: PeStep) -> str:
        """The statement of a step."""
        return self.steps.text("line")[step.row]

    def operation(self, step: PeStep) -> str:
        """The call of a step."""
        return self.steps.text("operation")[step.row]


class LaunchSteps(Struct, frozen=True):
    """A launch with its programs on all ranks."""

    launch: JointLaunch
    programs: tuple[PeProgram, ...]

    @classmethod
    def of(cls, launch: JointLaunch, ranks: Mapping[int, RankSteps]) -> "LaunchSteps":
        """The programs of a launch."""
        return cls(
            launch,
            tuple(ranks[each.sip].of_program(row) for each in launch.of_ranks for row in each.rows),
        )

    @property
    def time_ps(self) -> int:
        """The time from the begin of the last rank to the end of the last PE."""
        return self.end_ps - self.begin_ps

    @property
    def begin_ps(self) -> int:
        """The begin of the launch on the last rank."""
        return max(each.begin_ps for each in self.launch.of_ranks)

    @property
    def end_ps(self) -> int:
        """The end of the last PE."""
        return self.launch.end_ps


def median(values: Sequence[int]) -> int:
    """The lower median."""
    return sorted(values)[(len(values) - 1) // 2] if values else 0


def _classes(steps: Columns, ops: Columns) -> NDArray[np.int8]:
    parts, causes = parts_of_steps(steps, ops), steps.text("cause")
    classes = np.full(len(steps), StepClass.OTHER, np.int8)
    for part, of in (
        (TimePart.COMPUTE, StepClass.COMPUTE),
        (TimePart.MEMORY, StepClass.MEMORY),
        (TimePart.COMMUNICATION, StepClass.MESSAGE),
    ):
        classes[parts == part] = of
    # A computation that waits for data of a memory remains one: its step has both.
    classes[causes.matching((Cause.SLOT, Cause.CREDIT).__contains__)] = StepClass.MESSAGE
    classes[steps.text("operation").equal("barrier")] = StepClass.BARRIER
    return classes
