"""The rule on blocks so small that their latency exceeds the time of their bytes.

A step of a loop has a part that does not depend on its bytes: the issue of its command, the latency
of its route, the fill of the pipeline. In blocks k times as large there are a k-th of these parts.
k is at most the number of blocks and what the scratch of the kernel holds.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

from msgspec.structs import replace

from kernbench.explain.advice.accesses import MemoryAccessOp
from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.replay import Changes, StepKey
from kernbench.explain.advice.steps import PeProgram, PeStep, StepClass
from runtime.core.simtime import PS_PER_NS, ps_from_ns
from runtime.model.schema.topology_schema import MIB

_LOOP = 4
"""A statement that a program executes as often is in a loop."""
_REST = 10
"""Blocks are large enough when the fixed part is this part of the time of their bytes."""


@dataclass(frozen=True)
class BlockStep:
    """A step of a loop with its part that does not depend on bytes; `count` of them are alike.

    `access` is that of a step which waits for its own load or store.
    """

    step: PeStep
    fixed_ps: int
    count: int
    access: MemoryAccessOp | None = None


def block_findings(evidence: Evidence) -> list[Finding]:
    """Loops over small blocks."""
    saved_ps = 0
    lines = defaultdict[str, int](int)
    memory = list[BlockStep]()
    factors = list[int]()
    for number, launch in evidence.own_launches:
        changes = dict[StepKey, int]()
        for program in launch.programs:
            steps = _loop_steps(evidence, program)
            of_memory = [each for each in steps if each.access is not None]
            factor = _factor(evidence, program, of_memory)
            if factor < 2:
                continue
            factors.append(factor)
            memory += of_memory
            for each in steps:
                less_ps = _less_ps(evidence, each, min(factor, each.count))
                changes[program.sip, each.step.row] = -less_ps
                lines[evidence.line(program, each.step)] += less_ps
        if changes:
            saved_ps += evidence.saved_ps(number, Changes(steps=changes))
    if saved_ps <= 0 or not memory:
        return []
    return [_finding(saved_ps, memory, max(factors), costliest(lines.items()))]


def _less_ps(evidence: Evidence, each: BlockStep, factor: int) -> int:
    """The time that a step saves if one of a block `factor` times as large stands for as many."""
    issue_ps = each.step.issued_ps - each.step.begin_ps
    if each.access is None:
        return each.fixed_ps - each.fixed_ps // factor
    # A small access leaves channels of the memory idle, which a large one uses.
    large = replace(each.access, nbytes=each.access.nbytes * factor)
    taken_ps = min(each.access.alone_ps(evidence.times), each.access.time_ps)
    moved_ps = issue_ps + large.alone_ps(evidence.times)
    return max(issue_ps + taken_ps - moved_ps // factor, 0)


def _loop_steps(evidence: Evidence, program: PeProgram) -> list[BlockStep]:
    """The steps of loops; those that meet other PEs have no fixed part."""
    accesses = {each.op: each for each in evidence.accesses_of(program)}
    counts = Counter(evidence.line(program, step) for step in program.steps)
    steps = list[BlockStep]()
    for step in program.steps:
        count = counts[evidence.line(program, step)]
        if count < _LOOP or step.of in (StepClass.BARRIER, StepClass.MESSAGE):
            continue
        fixed_ps = step.issued_ps - step.begin_ps
        access = None if step.is_async_wait else accesses.get(step.op)
        if access is not None:
            fixed_ps += min(access.latency_ps(evidence.times), access.time_ps)
        elif step.of is StepClass.COMPUTE and not step.is_async_wait:
            fixed_ps += min(_fill_ps(evidence), step.end_ps - step.issued_ps)
        steps.append(BlockStep(step, fixed_ps, count, access))
    return steps


def _fill_ps(evidence: Evidence) -> int:
    """The fill of the pipeline of the vector engine."""
    cycles, ghz = evidence.file["pe.math.pipeline_cycles"], evidence.file["pe.math.clock_ghz"]
    return ps_from_ns(cycles / ghz)


def _factor(evidence: Evidence, program: PeProgram, memory: list[BlockStep]) -> int:
    """The factor by which the blocks may be larger, 1 where they are large already."""
    if not memory:
        return 1
    fixed_ps = sum(each.fixed_ps for each in memory)
    served_ps = sum(each.step.time_ps - each.fixed_ps for each in memory)
    if fixed_ps <= served_ps:
        return 1
    wanted = -(-_REST * fixed_ps // max(served_ps, 1))
    scratch = evidence.ranks[program.sip].steps["scratch_bytes"]
    used = max([1, *(int(scratch[each.step.row]) for each in memory)])
    fits = int(evidence.file["pe.tcm.kernel_scratch_mb"] * MIB) // used
    return max(1, min(wanted, fits, max(each.count for each in memory)))


def _finding(saved_ps: int, memory: list[BlockStep], factor: int, line: str) -> Finding:
    sizes = sorted(each.access.nbytes for each in memory if each.access is not None)
    nbytes = sizes[len(sizes) // 2]
    time_ps = sum(each.step.time_ps for each in memory) / len(memory)
    fixed_ps = sum(each.fixed_ps for each in memory) / len(memory)
    return Finding(
        rule="blocks",
        kind=LossKind.REDESIGN,
        cost_ps=saved_ps,
        title=f"small blocks: {len(memory):,} loads and stores of {nbytes:,} B",
        evidence=(
            f"one takes {_ns(time_ps)} ns, {_ns(fixed_ps)} ns of it for issue and latency, "
            "for any number of bytes"
        ),
        line=line,
        advice=(
            Advice(
                text=f"larger blocks: {nbytes * factor:,} B instead of {nbytes:,} B",
                saves_ps=saved_ps,
            ),
        ),
    )


def _ns(time_ps: float) -> str:
    return f"{time_ps / PS_PER_NS:,.1f}"
