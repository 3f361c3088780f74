"""The records of a scope that the rules share: its launches with their steps and accesses."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from msgspec.structs import replace

from kernbench.explain.advice.accesses import KernelAccesses, MemoryAccessOp
from kernbench.explain.advice.replay import Changes, LaunchReplay
from kernbench.explain.advice.scope import RunScope
from kernbench.explain.advice.steps import LaunchSteps, PeProgram, PeStep, RankSteps
from kernbench.explain.records import RecordedRun
from kernbench.explain.why.cursor import RunIndex
from kernbench.explain.why.machine_times import MachineTimes
from kernbench.explain.why.path import CriticalPath, critical_path, path_of_program
from kernbench.explain.why.path_jitter import divided
from kernbench.explain.why.piece import PathPiece
from kernbench.explain.why.what_if import Predictor
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.run_tables import PROGRAMS


class Evidence:
    """The launches of a scope of a run, and what is known of their steps and of the machine."""

    def __init__(self, records: RecordedRun, scope: RunScope, index: RunIndex) -> None:
        self.records, self.scope, self.index = records, scope, index
        self.ranks = {sip: RankSteps(records, sip) for sip in records.sips}
        self.times = MachineTimes(records.topology)
        self.file = TopologyFile(records.topology.values())
        self.accesses = KernelAccesses(records)
        self._replays = dict[int, LaunchReplay]()

    @cached_property
    def launches(self) -> list[LaunchSteps]:
        """The launches of the scope with their steps."""
        return [LaunchSteps.of(each, self.ranks) for each in self.scope.launches]

    @cached_property
    def own_launches(self) -> list[tuple[int, LaunchSteps]]:
        """The launches whose kernel is not that of a collective, with their numbers."""
        numbered = enumerate(self.launches)
        return [(number, each) for number, each in numbered if not each.launch.is_collective]

    def replayed_ps(self, number: int, changes: Changes) -> int:
        """The time of the launch `number` of the scope with changes of its steps."""
        return self._replay(number).time_ps(changes)

    def saved_ps(self, number: int, changes: Changes) -> int:
        """The time that the changes save."""
        return self._replay(number).time_ps(Changes()) - self.replayed_ps(number, changes)

    def _replay(self, number: int) -> LaunchReplay:
        if number not in self._replays:
            self._replays[number] = LaunchReplay(self.launches[number], self.index.slots)
        return self._replays[number]

    @cached_property
    def pieces(self) -> tuple[PathPiece, ...]:
        """The critical path of the scope.

        Of selected launches it is that of each by itself, from the begin of the launch to the PE
        that ends last, and the gap before it, since they may be hidden behind others; else that of
        the run.
        """
        scope = self.scope
        if not scope.of_launches:
            run = critical_path(self.records, self.index)
            divided_run = divided(self.records, run.pieces)
            return tuple(_clipped(tuple(divided_run), scope.begin_ps, scope.end_ps))
        pieces = list[PathPiece]()
        # The path of a launch leads back over the gap before it.
        begins = {id(after): before.end_ps for before, after in scope.gaps()}
        for launch in self.launches:
            last = max(launch.programs, key=lambda each: (each.end_ps, -each.sip))
            begin_ps = begins.get(id(launch.launch), launch.launch.begin_ps)
            number = self.number_of(last)
            path = path_of_program(self.records, self.index, last.sip, number, begin_ps)
            pieces += _clipped(tuple(divided(self.records, path)), begin_ps, last.end_ps)
        return tuple(pieces)

    @cached_property
    def predictor(self) -> Predictor:
        """The predictor of the times of the scope on other machines."""
        return Predictor(self.records, CriticalPath(self.scope.total_ps, self.pieces))

    def accesses_of(self, program: PeProgram) -> list[MemoryAccessOp]:
        """The accesses of a program to memories."""
        return self.accesses.of_program(program.sip, self.number_of(program))

    def number_of(self, program: PeProgram) -> int:
        """The number of a program in the tables of its SIP."""
        return self.records.table(PROGRAMS, program.sip)["program"].item(program.row)

    def line(self, program: PeProgram, step: PeStep) -> str:
        """The statement of a step."""
        return self.ranks[program.sip].line(step)

    def operation(self, program: PeProgram, step: PeStep) -> str:
        """The call of a step."""
        return self.ranks[program.sip].operation(step)

    @property
    def total_ps(self) -> int:
        """The time of the scope."""
        return self.scope.total_ps


def _clipped(pieces: Sequence[PathPiece], begin_ps: int, end_ps: int) -> Iterator[PathPiece]:
    """The parts of the pieces in an interval."""
    for piece in pieces:
        first, last = max(piece.begin_ps, begin_ps), min(piece.end_ps, end_ps)
        if first < last:
            yield replace(piece, begin_ps=first, end_ps=last)


def costliest(costs: Iterable[tuple[str, int]]) -> str:
    """The statement with the largest sum; the first by name of several; empty without any."""
    sums = defaultdict[str, int](int)
    for line, cost in costs:
        sums[line] += cost
    return min(sums, key=lambda line: (-sums[line], line), default="")
