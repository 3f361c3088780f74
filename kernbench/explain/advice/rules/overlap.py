"""The rule on loads, computations and stores that follow each other and could overlap.

With two buffers, the next block is on its way while the kernel computes. A phase of a program then
takes the longest of these: its computations and commands, with the first load and the last store;
the bytes of the memory with most of them, and the latencies of these two; half of its loads and
computations, since a buffer has one of them at a time, and the last store; and, for the launch, the
busiest link or memory. A load of bytes that the same program has stored before cannot come earlier.
"""

from collections import defaultdict
from collections.abc import Sequence

from kernbench.explain.advice.accesses import MemoryAccessOp
from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.loads import busiest_within
from kernbench.explain.advice.replay import Changes, StepKey
from kernbench.explain.advice.steps import LaunchSteps, PeProgram, PeStep, StepClass
from kernbench.oracle.theory.paths.routes import RouteEnd
from runtime.core.run_tables import NONE
from runtime.core.simtime import PS_PER_NS

_BUFFERS = 2


def overlap_findings(evidence: Evidence) -> list[Finding]:
    """Phases whose loads, computations and stores could overlap."""
    saved_ps, lines = 0, defaultdict[str, int](int)
    best: tuple[int, PeProgram, LaunchSteps] | None = None
    for number, launch in evidence.own_launches:
        changes = dict[StepKey, int]()
        for program in launch.programs:
            for phase in program.phases():
                less_ps = _hidden_ps(evidence, program, phase)
                if less_ps > 0:
                    changes[program.sip, phase[-1].row] = -less_ps
        if not changes:
            continue
        launch_ps = evidence.saved_ps(number, Changes(steps=changes))
        least_ps = busiest_within(evidence.records, launch.begin_ps, launch.end_ps)
        launch_ps = min(launch_ps, max(launch.time_ps - least_ps, 0))
        saved_ps += launch_ps
        program = max(launch.programs, key=lambda each: each.own_ps)
        if best is None or launch_ps > best[0]:
            best = launch_ps, program, launch
        for step in program.steps:
            if _is_blocking(evidence, program, step):
                lines[evidence.line(program, step)] += step.time_ps
    if best is None or saved_ps <= 0:
        return []
    return [_finding(evidence, best[1], saved_ps, costliest(lines.items()))]


def _is_blocking(evidence: Evidence, program: PeProgram, step: PeStep) -> bool:
    """Whether a step waits for an access that it has requested itself."""
    if step.op == NONE or step.of is not StepClass.MEMORY or step.is_async_wait:
        return False
    return evidence.operation(program, step).partition(" ")[0] in ("load", "store")


def _hidden_ps(evidence: Evidence, program: PeProgram, phase: Sequence[PeStep]) -> int:
    """The time that overlap would hide in a phase."""
    accesses = {each.op: each for each in evidence.accesses_of(program)}
    blocking = [
        step for step in phase if step.op in accesses and _is_blocking(evidence, program, step)
    ]
    loads = [step for step in blocking if accesses[step.op].is_read]
    stores = [step for step in blocking if not accesses[step.op].is_read]
    if len(blocking) < _BUFFERS + 1 or _reads_its_stores([accesses[s.op] for s in blocking]):
        return 0
    load_ps, store_ps = (sum(s.end_ps - s.issued_ps for s in each) for each in (loads, stores))
    own_ps = sum(step.own_ps for step in phase)
    others_ps = own_ps - load_ps - store_ps
    first_ps = load_ps // len(loads) if loads else 0
    last_ps = store_ps // len(stores) if stores else 0
    return own_ps - max(
        others_ps + first_ps + last_ps,
        # The bytes of the first load and of the last store are among those of the memory.
        _moved_ps(evidence, [accesses[step.op] for step in blocking])
        + sum(
            _latency_ps(evidence, [accesses[step.op] for step in each]) for each in (loads, stores)
        ),
        # A buffer is loaded again when its block has been computed.
        (load_ps + others_ps) // _BUFFERS + last_ps if len(loads) > _BUFFERS else 0,
    )


def _latency_ps(evidence: Evidence, accesses: Sequence[MemoryAccessOp]) -> int:
    """The mean time of accesses without that of their bytes."""
    latencies = [each.latency_ps(evidence.times) for each in accesses]
    return sum(latencies) // len(latencies) if latencies else 0


def _moved_ps(evidence: Evidence, accesses: Sequence[MemoryAccessOp]) -> int:
    """The time of the bytes at the memory with most of them."""
    sums = defaultdict[RouteEnd, float](float)
    for access in accesses:
        sums[access.memory] += access.bytes_ps(evidence.times)
    return round(max(sums.values(), default=0))


def _reads_its_stores(accesses: Sequence[MemoryAccessOp]) -> bool:
    """Whether a load reads bytes that an earlier store has written."""
    stored = list[tuple[int, int]]()
    for access in sorted(accesses, key=lambda each: each.begin_ps):
        end = access.address + access.nbytes
        if not access.is_read:
            stored.append((access.address, end))
        elif any(first < end and access.address < last for first, last in stored):
            return True
    return False


def _finding(evidence: Evidence, program: PeProgram, saved_ps: int, line: str) -> Finding:
    memory_ps = sum(s.time_ps for s in program.steps if _is_blocking(evidence, program, s))
    computed_ps = sum(s.time_ps for s in program.steps if s.of is StepClass.COMPUTE)
    return Finding(
        rule="overlap",
        kind=LossKind.REDESIGN,
        cost_ps=saved_ps,
        title=(
            f"nothing overlaps: {program.name} waits {_ns(memory_ps)} ns in loads and stores, "
            f"and computes {_ns(computed_ps)} ns behind them"
        ),
        evidence=(
            "each load and store ends before the next command; no load reads what the kernel has "
            "stored before"
        ),
        line=line,
        advice=(
            Advice(
                text="two buffers: tl.load_async of the next block before the work on this one, "
                "tl.store_async of results in buffers of their own (out=)",
                saves_ps=saved_ps,
            ),
        ),
    )


def _ns(time_ps: float) -> str:
    return f"{time_ps / PS_PER_NS:,.0f}"
