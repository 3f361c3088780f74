"""The rule on channels of a slice: accesses whose bytes lie on few of them.

Bursts of a slice lie on its channels in turn, so blocks a multiple of all channels apart lie on the
same ones. The loads of the channels show it; the cost is that of a replay in which the accesses to
such slices have the closed form of bytes on all channels.
"""

from collections import defaultdict

from kernbench.explain.advice.accesses import MemoryAccessOp
from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.loads import loads_within
from kernbench.explain.advice.replay import Changes, StepKey
from kernbench.explain.advice.steps import LaunchSteps
from runtime.core.run_tables import NONE
from runtime.core.simtime import PS_PER_NS

_UNEVEN = 2
"""Channels are uneven of which one is busy for this many times the mean."""
_CHANNEL = ".hbm_ctrl.pc"


def channel_findings(evidence: Evidence) -> list[Finding]:
    """Accesses to slices of which few channels serve most bytes."""
    saved_ps, lines = 0, list[tuple[str, int]]()
    slices = dict[str, tuple[float, float]]()
    for number, launch in evidence.own_launches:
        uneven = _uneven_slices(evidence, launch)
        if not uneven:
            continue
        changes = dict[StepKey, int]()
        for program in launch.programs:
            accesses = {each.op: each for each in evidence.accesses_of(program)}
            for step in program.steps:
                access = accesses.get(step.op) if step.op != NONE else None
                if access is None or f"sip{access.memory.sip}.{_slice(access)}" not in uneven:
                    continue
                alone_ps = access.alone_ps(evidence.times)
                late_ps = step.end_ps - step.issued_ps - alone_ps
                if late_ps > 0:
                    changes[program.sip, step.row] = -late_ps
                    lines.append((evidence.line(program, step), late_ps))
        if changes:
            saved_ps += evidence.saved_ps(number, Changes(steps=changes))
            slices |= uneven
    if saved_ps <= 0:
        return []
    name, (most_ps, mean_ps) = max(slices.items(), key=lambda each: each[1][0] / each[1][1])
    return [
        Finding(
            rule="channels",
            kind=LossKind.DEFECT,
            cost_ps=saved_ps,
            title=f"few channels: {len(slices)} slices, of {name} one is busy for "
            f"{most_ps / PS_PER_NS:,.0f} ns, all in the mean for {mean_ps / PS_PER_NS:,.0f}",
            evidence="the loads of the channels; blocks a multiple of all channels apart lie on "
            "the same ones",
            line=costliest(lines),
            advice=(
                Advice(
                    text="contiguous blocks, or rows with a stride that is no multiple of "
                    "hbm.burst_bytes x hbm.num_pcs (a burst more)",
                    saves_ps=saved_ps,
                ),
            ),
        )
    ]


def _slice(access: MemoryAccessOp) -> str:
    return access.memory.name.removesuffix(".hbm_ctrl")


def _uneven_slices(evidence: Evidence, launch: LaunchSteps) -> dict[str, tuple[float, float]]:
    """The busiest channel and the mean of all, of slices where they differ."""
    busy = defaultdict[str, list[int]](list)
    for load in loads_within(evidence.records, launch.begin_ps, launch.end_ps):
        if load.kind == "memory" and _CHANNEL in load.name:
            busy[f"sip{load.sip}.{load.name.partition(_CHANNEL)[0]}"].append(load.busy_ps)
    channels = evidence.records.topology.hbm.num_pcs
    means = {name: sum(times) / channels for name, times in busy.items()}
    return {
        name: (max(times), means[name])
        for name, times in busy.items()
        if max(times) >= _UNEVEN * means[name] > 0
    }
