"""The rule on uneven work: PEs, or all PEs of a rank, that others of the launch wait for.

In each phase between barriers that order accesses, the time of a PE without waits for others is
compared with that of the rest. What exceeds it is uneven work as far as the PE moves more bytes,
takes more steps or computes longer, and uneven service where it waits longer for the same bytes.
Few slow PEs would have the time of the slowest of the others; of many, the work could be moved
until all have the mean. Where few have bytes of their own which the others lack, their surplus may
be needless or have to be moved: their time is taken to be midway between these two, which differ by
an eighth at most.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import SERVICE, Advice, Finding, LossKind
from kernbench.explain.advice.replay import Changes, StepKey
from kernbench.explain.advice.rules.barriers import needless_barriers
from kernbench.explain.advice.steps import (
    LaunchSteps,
    PeProgram,
    PeStep,
    StepClass,
    median,
)
from runtime.core.simtime import PS_PER_NS

SLOW = 1.1
"""A PE is slow whose time in a phase exceeds the median by this factor."""
_FEW = 4
"""Fewer PEs than this part of all are few."""
_VERY_FEW = 8
_MESSAGES = frozenset({"send", "recv"})


@dataclass(frozen=True)
class PhaseWork:
    """The work of a PE between two barriers: its time without waits for others, and what it did.

    `different_bytes` counts each of the accessed blocks once, `memory_bytes` each access.
    """

    program: PeProgram
    steps: Sequence[PeStep]
    memory_bytes: int
    different_bytes: int

    @property
    def own_ps(self) -> int:
        """The time without waits for other PEs."""
        return sum(step.own_ps for step in self.steps)

    @property
    def memory_ps(self) -> int:
        """The time of the steps that wait for memory."""
        return sum(step.own_ps for step in self.steps if step.of is StepClass.MEMORY)


@dataclass(frozen=True)
class SlowPe:
    """A PE that is slow in a phase: the time beyond its target, and the part due to its work."""

    work: PhaseWork
    excess_ps: int
    of_work_ps: int


def balance_findings(evidence: Evidence) -> list[Finding]:
    """Uneven work, and uneven service of equal work."""
    slow = [_slow_pes(evidence, launch) for launch in evidence.launches]
    findings = list[Finding]()
    for of_work in (True, False):
        saved_ps, costs = 0, defaultdict[PeProgram, int](int)
        worst: tuple[int, SlowPe, LaunchSteps] | None = None
        for number, pes in enumerate(slow):
            chosen = [each for each in pes if _part_ps(each, of_work=of_work) > 0]
            if not chosen:
                continue
            changes = Changes(
                steps={key: ps for each in chosen for key, ps in _changes(each, of_work=of_work)}
            )
            launch_ps = evidence.saved_ps(number, changes)
            saved_ps += launch_ps
            for each in chosen:
                costs[each.work.program] += _part_ps(each, of_work=of_work)
            largest = max(chosen, key=lambda each: _part_ps(each, of_work=of_work))
            if worst is None or launch_ps > worst[0]:
                worst = launch_ps, largest, evidence.launches[number]
        if worst is not None and saved_ps > 0:
            findings.append(_finding(evidence, worst, saved_ps, of_work=of_work))
    return findings


def _part_ps(slow: SlowPe, *, of_work: bool) -> int:
    return slow.of_work_ps if of_work else slow.excess_ps - slow.of_work_ps


def _changes(slow: SlowPe, *, of_work: bool) -> Iterator[tuple[StepKey, int]]:
    """The excess of a phase, divided over its steps by their times."""
    sip, total_ps = slow.work.program.sip, slow.work.own_ps
    part_ps, before_ps = _part_ps(slow, of_work=of_work), 0
    for step in slow.work.steps:
        until_ps = before_ps + step.own_ps
        less_ps = part_ps * until_ps // total_ps - part_ps * before_ps // total_ps
        yield (sip, step.row), -less_ps
        before_ps = until_ps


def _slow_pes(evidence: Evidence, launch: LaunchSteps) -> list[SlowPe]:
    if len(launch.programs) < 2 or launch.launch.is_collective:
        return []
    needless = needless_barriers(evidence, launch)
    phases = [program.phases(needless) for program in launch.programs]
    if len({len(each) for each in phases}) > 1:
        phases = [[[step for phase in each for step in phase]] for each in phases]
    accesses = [_accesses_of_steps(evidence, program) for program in launch.programs]
    slow = list[SlowPe]()
    for phase in range(len(phases[0])):
        works = [
            _phase_work(program, of_program[phase], of_step)
            for program, of_program, of_step in zip(launch.programs, phases, accesses, strict=True)
        ]
        by_role = defaultdict[frozenset[str], list[PhaseWork]](list)
        for each in works:
            if each.steps:
                by_role[_role(evidence, each)].append(each)
        for equals in by_role.values():
            slow += _slow_in_phase(equals)
    return slow


def _role(evidence: Evidence, work: PhaseWork) -> frozenset[str]:
    """The sides of messages that a PE has in a phase: those who send have no equals who receive."""
    calls = (evidence.operation(work.program, step).partition(" ")[0] for step in work.steps)
    return frozenset(call for call in calls if call in _MESSAGES)


_Blocks = list[tuple[int, int, bool]]
"""Accesses as address, bytes, and whether they read."""


def _accesses_of_steps(evidence: Evidence, program: PeProgram) -> dict[int, _Blocks]:
    blocks = defaultdict[int, _Blocks](list)
    for access in evidence.accesses_of(program):
        blocks[access.step].append((access.address, access.nbytes, access.is_read))
    return blocks


def _phase_work(
    program: PeProgram, steps: Sequence[PeStep], blocks_of_step: Mapping[int, _Blocks]
) -> PhaseWork:
    blocks = [block for step in steps for block in blocks_of_step.get(step.row, ())]
    return PhaseWork(
        program,
        steps,
        memory_bytes=sum(nbytes for _, nbytes, _ in blocks),
        different_bytes=sum(nbytes for _, nbytes, _ in set(blocks)),
    )


def _slow_in_phase(works: Sequence[PhaseWork]) -> list[SlowPe]:
    if len(works) < 2:
        return []
    times = [each.own_ps for each in works]
    typical_ps = median(times)
    slow = [each for each in works if each.own_ps > SLOW * typical_ps]
    if not slow:
        return []
    typical = next(each for each in works if each.own_ps == typical_ps)
    mean_ps = sum(times) // len(times)
    if len(slow) * _FEW > len(works):
        target_ps = mean_ps
    else:
        target_ps = max(each.own_ps for each in works if each.own_ps <= SLOW * typical_ps)
        more = all(each.different_bytes > SLOW * typical.different_bytes for each in slow)
        if more and len(slow) * _VERY_FEW <= len(works):
            target_ps = (target_ps + mean_ps) // 2
    return [
        SlowPe(each, excess_ps, min(_of_work_ps(each, typical, excess_ps), excess_ps))
        for each in slow
        if (excess_ps := each.own_ps - target_ps) > 0
    ]


def _of_work_ps(slow: PhaseWork, typical: PhaseWork, excess_ps: int) -> int:
    """The part of the excess that is due to more work, and not to slower service of memory."""
    memory_ps = slow.memory_ps
    if not memory_ps or not typical.memory_bytes or not typical.memory_ps:
        return excess_ps
    expected_ps = typical.memory_ps * slow.memory_bytes / typical.memory_bytes
    slower_ps = max(memory_ps - expected_ps, 0)
    # Rounding of latencies and of the place in a queue is no slower service.
    if slower_ps * 10 < memory_ps:
        return excess_ps
    return max(round(excess_ps - slower_ps), 0)


def _finding(
    evidence: Evidence,
    worst: tuple[int, SlowPe, LaunchSteps],
    saved_ps: int,
    *,
    of_work: bool,
) -> Finding:
    _, slow, launch = worst
    program = slow.work.program
    own = {each: each.own_ps for each in launch.programs}
    mean_ps = sum(own.values()) / len(own)
    times = ", ".join(f"{name} {_ns(own_ps)}" for name, own_ps in folded_times(launch))
    line = _line(evidence, slow, launch)
    title = f"uneven work: {times} ns" if of_work else f"equal work, uneven service: {times} ns"
    text = (
        f"move work of {_slow_names(launch)} to the other PEs"
        if of_work
        else f"place the operands of {program.name} nearer, or give it less work"
    )
    return Finding(
        rule="balance" if of_work else SERVICE,
        kind=LossKind.DEFECT,
        cost_ps=saved_ps,
        title=title,
        evidence=(
            f"max / mean {max(own.values()) / mean_ps if mean_ps else 1:.2f} without waits for "
            f"others; {_compared(evidence, program, launch)}"
        ),
        line=line,
        advice=(Advice(text=text, saves_ps=saved_ps),),
    )


def _compared(evidence: Evidence, slow: PeProgram, launch: LaunchSteps) -> str:
    """The work of a slow PE beside that of the median PE."""
    typical_ps = median([each.own_ps for each in launch.programs])
    typical = next(each for each in launch.programs if each.own_ps == typical_ps)
    mine, other = _work_of(evidence, slow), _work_of(evidence, typical)
    parts = [f"{mine[each] / other[each]:.2f} times the {each}" for each in mine if other[each]]
    return f"{slow.name} has {', '.join(parts)} of {typical.name}" if parts else slow.name


def _work_of(evidence: Evidence, program: PeProgram) -> dict[str, int]:
    computing = [step for step in program.steps if step.of is StepClass.COMPUTE]
    return {
        "bytes of memory": sum(access.nbytes for access in evidence.accesses_of(program)),
        "steps": len(program.steps),
        "time in computations": sum(step.time_ps for step in computing),
    }


def folded_times(launch: LaunchSteps) -> list[tuple[str, int]]:
    """The times of the PEs without waits for others, alike ones as one entry; the most PEs first.

    An entry is `127 PEs`, or the PE if it is alone, or the rank if it has all PEs of that time.
    """
    ordered = sorted(launch.programs, key=lambda each: (each.own_ps, each.sip, each.cube, each.pe))
    groups: list[list[PeProgram]] = []
    for program in ordered:
        if groups and program.own_ps <= 1.05 * groups[-1][0].own_ps:
            groups[-1].append(program)
        else:
            groups.append([program])
    groups.sort(key=lambda group: (-len(group), -group[-1].own_ps))
    shown = [(_name(group, launch), group[-1].own_ps) for group in groups[:_SHOWN]]
    rest = [program for group in groups[_SHOWN:] for program in group]
    if rest:
        shown.append((f"{len(rest)} others up to", max(each.own_ps for each in rest)))
    return shown


_SHOWN = 3


def _name(group: Sequence[PeProgram], launch: LaunchSteps) -> str:
    if len(group) == 1:
        return group[0].name
    sips = {each.sip for each in group}
    if len(sips) == 1 and len({each.sip for each in launch.programs}) > 1:
        [sip] = sips
        if sum(each.sip == sip for each in launch.programs) == len(group):
            return f"rank {sip} with {len(group)} PEs"
    return f"{len(group)} PEs"


def _slow_names(launch: LaunchSteps) -> str:
    typical_ps = median([each.own_ps for each in launch.programs])
    slow = [each for each in launch.programs if each.own_ps > SLOW * typical_ps]
    if not slow:
        return "the slowest PE of each phase"
    return slow[0].name if len(slow) == 1 else _name(slow, launch)


def _line(evidence: Evidence, slow: SlowPe, launch: LaunchSteps) -> str:
    """The statement at which a slow PE spends most time beyond that of the median PE."""
    typical_ps = median([each.own_ps for each in launch.programs])
    typical = next(each for each in launch.programs if each.own_ps == typical_ps)
    program = slow.work.program
    costs = [(evidence.line(program, step), step.own_ps) for step in program.steps]
    costs += [(evidence.line(typical, step), -step.own_ps) for step in typical.steps]
    return costliest(costs)


def _ns(time_ps: int) -> str:
    return f"{time_ps / PS_PER_NS:,.0f}"
