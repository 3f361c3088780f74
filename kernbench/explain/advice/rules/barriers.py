"""The rule on barriers that order nothing.

A barrier is needed if one PE reads what another one has written before, or writes what another one
has read or written, and no barrier between them is needed already. Accesses of a PE to its own
bytes are ordered without one.
"""

from collections.abc import Sequence

from kernbench.explain.advice.accesses import MemoryAccessOp
from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.replay import Changes, StepKey
from kernbench.explain.advice.steps import LaunchSteps, PeProgram
from kernbench.explain.why.index import place

_Access = tuple[int, int, int, bool]
"""Begin, end, PE of the launch, and whether it writes."""


def barrier_findings(evidence: Evidence) -> list[Finding]:
    """Barriers without which the launch would be the same, and their cost."""
    saved_ps, calls, count = 0, 0, 0
    lines = list[tuple[str, int]]()
    pes = 0
    for number, launch in enumerate(evidence.launches):
        dropped = needless_barriers(evidence, launch)
        if not dropped:
            continue
        launch_ps = evidence.saved_ps(number, Changes(dropped=dropped))
        saved_ps += launch_ps
        calls += len(dropped)
        pes = max(pes, len(launch.programs))
        count += len(dropped) // len(launch.programs)
        for program in launch.programs:
            for step in program.barriers:
                if (program.sip, step.row) in dropped:
                    lines.append((evidence.line(program, step), step.time_ps))
    if saved_ps <= 0:
        return []
    waited_ps = sum(time_ps for _, time_ps in lines)
    line = costliest(lines)
    return [
        Finding(
            rule="barrier",
            kind=LossKind.DEFECT,
            cost_ps=saved_ps,
            title=f"needless barrier: {count:,} of {pes} PEs, {waited_ps / calls / 1000:,.0f} ns "
            "a call in the mean",
            evidence="behind it no PE reads what another one has written before it, or writes what "
            "another one has read or written",
            line=line,
            advice=(Advice(text=f"leave out the barrier at {line}", saves_ps=saved_ps),),
        )
    ]


def needless_barriers(evidence: Evidence, launch: LaunchSteps) -> frozenset[StepKey]:
    """The steps that are barriers which order no accesses."""
    counts = {len(program.barriers) for program in launch.programs}
    if counts == {0} or len(counts) > 1 or len(launch.programs) < 2:
        return frozenset()
    by_sip: dict[int, list[PeProgram]] = {}
    for program in launch.programs:
        by_sip.setdefault(program.sip, []).append(program)
    dropped = set[StepKey]()
    for programs in by_sip.values():
        phases = _accesses_by_phase(evidence, programs)
        if phases is None:
            return frozenset()
        before = list(phases[0])
        for number, behind in enumerate(phases[1:]):
            if _conflict(before, behind):
                before = list(behind)
            else:
                before += behind
                dropped |= {(program.sip, program.barriers[number].row) for program in programs}
    return frozenset(dropped)


def _accesses_by_phase(
    evidence: Evidence, programs: Sequence[PeProgram]
) -> list[list[_Access]] | None:
    """The accesses of all PEs of a rank by phase; None if a gather hides what it reads."""
    phases: list[list[_Access]] = [[] for _ in range(len(programs[0].barriers) + 1)]
    for program in programs:
        calls = [step.begin_ps for step in program.barriers]
        pe = int(place(program.cube, program.pe))
        names = evidence.ranks[program.sip].ops.text("name")
        for access in evidence.accesses_of(program):
            if names[access.op] == "gather":
                return None
            if access.memory.kind == "pe":
                continue
            phase = sum(access.begin_ps >= call for call in calls)
            phases[phase].append(_interval(access, pe))
    return phases


def _interval(access: MemoryAccessOp, pe: int) -> _Access:
    return access.address, access.address + access.nbytes, pe, not access.is_read


def _conflict(before: Sequence[_Access], behind: Sequence[_Access]) -> bool:
    """Whether an access before and one behind, of two PEs, have a byte that one of them writes."""
    ordered = sorted([(*access, 0) for access in before] + [(*access, 1) for access in behind])
    # The intervals that reach farthest, of two PEs each: by side, and whether they write.
    farthest: dict[tuple[int, bool], list[tuple[int, int]]] = {}
    for begin, end, pe, writes, side in ordered:
        for other_writes in (True, False):
            if not (writes or other_writes):
                continue
            for other_end, other_pe in farthest.get((1 - side, other_writes), ()):
                if other_end > begin and other_pe != pe:
                    return True
        kept = [each for each in farthest.get((side, writes), []) if each[1] != pe]
        own = [each for each in farthest.get((side, writes), []) if each[1] == pe]
        reach = max([end, *(each[0] for each in own)])
        farthest[side, writes] = sorted([*kept, (reach, pe)], reverse=True)[:2]
    return False
