"""The rule on operands in the slices of other PEs: far ones, and one slice that many PEs read.

Each access to another slice would take the time of the closed form for the slice of the PE, if its
bytes lay there. The cost is that of a replay in which it does. Bytes that several PEs read cannot
lie beside all of them: the advice is then a copy for each cube.
"""

from collections import defaultdict
from collections.abc import Sequence

from kernbench.explain.advice.accesses import MemoryAccessOp
from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.replay import Changes, StepKey
from kernbench.explain.advice.steps import LaunchSteps, PeProgram, StepClass
from kernbench.oracle.theory.paths.routes import RouteEnd
from runtime.core.run_tables import NONE
from runtime.core.simtime import PS_PER_NS

_HOT = 4
"""A slice is hot to which this many PEs have access, and which serves this many times the mean."""


def placement_findings(evidence: Evidence) -> list[Finding]:
    """KernelAccesses to the slices of other PEs."""
    saved_ps = 0
    far = list[MemoryAccessOp]()
    for number, launch in enumerate(evidence.launches):
        accesses = [each for p in launch.programs for each in evidence.accesses_of(p)]
        elsewhere = [access for access in accesses if not access.is_own]
        if elsewhere:
            used = frozenset(access.memory for access in elsewhere)
            saved_ps += evidence.saved_ps(number, _local(evidence, launch, used))
            far += elsewhere
    if saved_ps <= 0:
        return []
    return [_finding(evidence, far, saved_ps)]


def _local(evidence: Evidence, launch: LaunchSteps, used: frozenset[RouteEnd]) -> Changes:
    """The changes of a launch whose accesses are all to the slice of their PE.

    The PE of a slice in `used`, which others use, has it for itself then.
    """
    steps, ops = dict[StepKey, int](), dict[tuple[int, int], int]()
    for program in launch.programs:
        accesses = [
            each for each in evidence.accesses_of(program) if not each.is_own or each.memory in used
        ]
        by_op = {access.op: access for access in accesses}
        for access in accesses:
            change_ps = min(access.local_ps(evidence.times) - access.time_ps, 0)
            ops[access.sip, access.op] = change_ps
        for step in program.steps:
            if step.op in by_op and not step.is_async_wait:
                steps[program.sip, step.row] = ops[program.sip, step.op]
        _add_streams(evidence, program, accesses, steps)
    return Changes(steps=steps, ops=ops)


def _add_streams(
    evidence: Evidence,
    program: PeProgram,
    accesses: Sequence[MemoryAccessOp],
    steps: dict[StepKey, int],
) -> None:
    """The waits for products whose tiles come from other slices: shorter as their tiles are."""
    rank = evidence.ranks[program.sip]
    engines = rank.ops.text("engine")
    for step in program.steps:
        if step.op == NONE or step.of is not StepClass.COMPUTE:
            continue
        if engines[step.op] not in ("pe_gemm", "pe_fetch_store", "pe_dma"):
            continue
        tiles = [
            each for each in accesses if step.begin_ps < each.begin_ps + each.time_ps <= step.end_ps
        ]
        taken_ps = sum(each.time_ps for each in tiles)
        if len(tiles) > 1 and taken_ps:
            local_ps = sum(min(each.local_ps(evidence.times), each.time_ps) for each in tiles)
            waited_ps = step.end_ps - step.issued_ps
            steps[program.sip, step.row] = round(waited_ps * (local_ps / taken_ps - 1))


def _finding(evidence: Evidence, far: Sequence[MemoryAccessOp], saved_ps: int) -> Finding:
    nbytes, readers = defaultdict[RouteEnd, int](int), defaultdict[RouteEnd, set[RouteEnd]](set)
    for access in far:
        nbytes[access.memory] += access.nbytes
        readers[access.memory].add(access.reader)
    hottest = max(nbytes, key=lambda memory: (nbytes[memory], memory.name))
    pes = {access.reader for access in far}
    moved = sum(nbytes.values())
    is_hot = len(readers[hottest]) >= _HOT and nbytes[hottest] * len(pes) >= _HOT * moved
    shared = _is_shared(far)
    taken_ps = sum(access.time_ps for access in far)
    alone_ps = sum(access.alone_ps(evidence.times) for access in far)
    local_ps = sum(access.local_ps(evidence.times) for access in far)
    line = costliest(
        (
            evidence.ranks[access.sip].steps.text("line")[access.step],
            access.time_ps - access.local_ps(evidence.times),
        )
        for access in far
    )
    slice_name = f"sip{hottest.sip}.{hottest.name.removesuffix('.hbm_ctrl')}"
    if is_hot:
        title = (
            f"hot slice: {len(readers[hottest])} other PEs use the HBM slice of {slice_name}, "
            f"{nbytes[hottest]:,} B"
        )
    else:
        title = f"operands far away: {len(pes)} PEs move {moved:,} B of {_distance(far)}"
    count = len(far)
    return Finding(
        rule="hot slice" if is_hot else "far operands",
        kind=LossKind.DEFECT,
        cost_ps=saved_ps,
        title=title,
        evidence=(
            f"{count:,} accesses of {_ns(taken_ps / count)} ns in the mean; alone on their way "
            f"{_ns(alone_ps / count)}, in the slice of the PE {_ns(local_ps / count)}"
        ),
        line=line,
        advice=(Advice(text=_advice(shared=shared), saves_ps=saved_ps),),
    )


def _advice(*, shared: bool) -> str:
    if shared:
        return (
            "several PEs read the same bytes: keep a copy in each cube or PE, or load them once "
            "and send them on"
        )
    return "place each part in the HBM slice of the PE that uses it (DPPolicy: cube=, pe=)"


def _is_shared(far: Sequence[MemoryAccessOp]) -> bool:
    """Whether most of the bytes are those that another PE reads as well."""
    readers = defaultdict[int, set[RouteEnd]](set)
    for access in far:
        readers[access.address].add(access.reader)
    shared = sum(access.nbytes for access in far if len(readers[access.address]) > 1)
    return 2 * shared > sum(access.nbytes for access in far)


def _distance(far: Sequence[MemoryAccessOp]) -> str:
    if any(access.memory.sip != access.sip for access in far):
        return "another SIP"
    if any(access.memory.cube != access.cube for access in far):
        return "other cubes"
    return "other PEs of their cube"


def _ns(time_ps: float) -> str:
    return f"{time_ps / PS_PER_NS:,.0f}"
