"""Rows for each kernel of a scope: its PEs, folded by their times, and what the slowest loses."""

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from kernbench.explain.advice.evidence import Evidence
from kernbench.explain.advice.steps import LaunchSteps, PeProgram, StepClass

_ALIKE = 1.02
"""PEs whose times differ by less than this factor share a row."""
MOST_ROWS = 6
"""Rows of a kernel; the PEs of further ones are those of the last row."""


class FoldedPes(Struct, frozen=True):
    """The PEs of a kernel with nearly equal times: the longest, and the mean of each part.

    `name` is the PE that takes longest. `own_ps` is the time without waits for other PEs.
    """

    pes: int
    name: str
    time_ps: int
    own_ps: int
    compute_ps: int
    memory_ps: int
    message_ps: int
    barrier_ps: int


class PeOwnTime(Struct, frozen=True):
    """A PE of a launch: its time, and that without waits for other PEs."""

    sip: int
    cube: int
    pe: int
    time_ps: int
    own_ps: int


class KernelRows(Struct, frozen=True):
    """The longest launch of a kernel in a scope: its PEs, and the same folded.

    `max_ps` and `mean_ps` are those of the times without waits for others.
    """

    name: str
    launches: int
    time_ps: int
    longest_ps: int
    max_ps: int
    mean_ps: int
    slowest: str
    rows: tuple[FoldedPes, ...]
    programs: tuple[PeOwnTime, ...]

    @property
    def lost_ps(self) -> int:
        """The time for which the slowest PE exceeds the mean."""
        return self.max_ps - self.mean_ps


def kernel_rows(evidence: Evidence, most: int = 5) -> list[KernelRows]:
    """The kernels of a scope, those with the longest sum of launches first."""
    by_name = defaultdict[str, list[LaunchSteps]](list)
    for launch in evidence.launches:
        by_name[launch.launch.name].append(launch)
    times = {name: sum(each.launch.time_ps for each in of) for name, of in by_name.items()}
    names = sorted(by_name, key=lambda name: (-times[name], name))[:most]
    return [_rows(name, by_name[name], times[name]) for name in names]


def _rows(name: str, launches: Sequence[LaunchSteps], time_ps: int) -> KernelRows:
    longest = max(launches, key=lambda each: each.launch.time_ps)
    own = {program: program.own_ps for program in longest.programs}
    slowest = max(longest.programs, key=lambda each: own[each])
    return KernelRows(
        name=name,
        launches=len(launches),
        time_ps=time_ps,
        longest_ps=longest.launch.time_ps,
        max_ps=own[slowest],
        mean_ps=sum(own.values()) // len(own),
        slowest=slowest.name,
        rows=tuple(_folded(group) for group in _groups(longest.programs)),
        programs=tuple(
            PeOwnTime(each.sip, each.cube, each.pe, each.time_ps, own[each])
            for each in sorted(own, key=lambda each: (each.sip, each.cube, each.pe))
        ),
    )


def _groups(programs: Sequence[PeProgram]) -> list[list[PeProgram]]:
    """The PEs by their times without waits, the slowest group first."""
    groups: list[list[PeProgram]] = []
    for program in sorted(programs, key=lambda each: (-each.own_ps, each.sip, each.cube, each.pe)):
        first = groups[-1][0] if groups else None
        if first is not None and first.own_ps <= _ALIKE * program.own_ps:
            groups[-1].append(program)
        else:
            groups.append([program])
    if len(groups) > MOST_ROWS:
        rest = [program for group in groups[MOST_ROWS - 1 :] for program in group]
        groups[MOST_ROWS - 1 :] = [rest]
    return groups


def _folded(group: Sequence[PeProgram]) -> FoldedPes:
    def mean_ps(of: StepClass) -> int:
        return sum(s.time_ps for each in group for s in each.steps if s.of is of) // len(group)

    return FoldedPes(
        pes=len(group),
        name=group[0].name,
        time_ps=max(each.time_ps for each in group),
        own_ps=group[0].own_ps,
        compute_ps=mean_ps(StepClass.COMPUTE),
        memory_ps=mean_ps(StepClass.MEMORY),
        message_ps=mean_ps(StepClass.MESSAGE),
        barrier_ps=mean_ps(StepClass.BARRIER),
    )
