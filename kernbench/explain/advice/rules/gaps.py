"""The rule on the time between launches: the launches themselves, and what the host does there.

A launch behind another one on a stream begins at the earliest after the report of its predecessor
and its own way to the PEs: the closed form of both is the cost of a launch. What a gap has beyond
that is the cost of the copies, the mappings or the host that the next launch waited for.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernbench.explain.advice.evidence import Evidence, costliest
from kernbench.explain.advice.finding import Advice, Finding, LossKind
from kernbench.explain.advice.launches import JointLaunch, RankLaunch
from kernbench.explain.why.intervals import length_ps
from kernbench.explain.why.parts import HOST_KINDS
from kernbench.explain.why.work import LaunchReportWork, LaunchWork
from runtime.core.run_tables import COMMANDS, PROGRAMS, RANK_PROGRAM
from runtime.core.simtime import PS_PER_NS

COPY, MAPPING, HOST = "copy", "mapping", "host"
"""Causes of a gap beyond the launch itself."""
_MAPS = "MmuMapMsg"


@dataclass(frozen=True, kw_only=True)
class LaunchGap:
    """The time between two launches: the part of a launch by itself, and the rest with its cause.

    `waits` is whether the program has submitted the second launch only after the answer of the
    first.
    """

    line: str
    gap_ps: int
    launch_ps: int
    cause: str
    waits: bool
    copies: int
    copied_bytes: int
    copied_ps: int

    @property
    def rest_ps(self) -> int:
        """The time beyond that of a launch by itself."""
        return self.gap_ps - self.launch_ps


def gap_findings(evidence: Evidence) -> list[Finding]:
    """Launches that are short beside the gaps between them, and copies or the host in the gaps."""
    pairs = evidence.scope.gaps()
    gaps = [_gap(evidence, before, after) for before, after in pairs]
    by_cause = defaultdict[str, list[LaunchGap]](list)
    for gap in gaps:
        if gap.rest_ps > 0 or not gap.cause:
            by_cause[gap.cause].append(gap)
    findings = list[Finding]()
    if copied := by_cause[COPY]:
        findings.append(_copies(evidence, copied))
    if mapped := by_cause[MAPPING]:
        findings.append(_mappings(mapped))
    if computed := by_cause[HOST]:
        findings.append(_host(computed))
    if idle := by_cause[""]:
        findings.append(_launches(evidence, idle))
    return findings


def _gap(evidence: Evidence, before: JointLaunch, after: JointLaunch) -> LaunchGap:
    last = max(after.of_ranks, key=lambda each: (each.begin_ps, -each.sip))
    sip = last.sip
    ended = [each for each in before.of_ranks if each.sip == sip]
    end_ps = ended[0].end_ps if ended else before.end_ps
    gap_ps = max(after.begin_ps - before.end_ps, 0)
    alone_ps = _launch_ps(evidence, ended[0] if ended else None, last)
    copies, copied_bytes, copied_ps = _copied(evidence, sip, end_ps, last.begin_ps)
    cause, line = "", last.line
    if copies:
        cause, line = COPY, _command_line(evidence, sip, end_ps, last.begin_ps)
    elif _has_command(evidence, sip, end_ps, last.begin_ps):
        cause = MAPPING
    elif computed := _host_line(evidence, sip, end_ps, last.begin_ps):
        cause, line = HOST, computed
    return LaunchGap(
        line=line,
        gap_ps=gap_ps,
        launch_ps=min(gap_ps, alone_ps),
        cause=cause,
        waits=bool(ended) and last.submitted_ps >= ended[0].answered_ps,
        copies=copies,
        copied_bytes=copied_bytes,
        copied_ps=copied_ps,
    )


def _launch_ps(evidence: Evidence, before: RankLaunch | None, after: RankLaunch) -> int:
    """The closed form from the end of a launch to the begin of the next one of its stream."""
    programs = evidence.records.table(PROGRAMS, after.sip)
    pes = tuple((programs["cube"].item(row), programs["pe"].item(row)) for row in after.rows)
    time_ps = evidence.times.of(LaunchWork(pes)).fixed_ps
    if before is not None:
        last = max(before.rows, key=lambda row: (programs["end_ps"].item(row), row))
        pe = programs["cube"].item(last), programs["pe"].item(last)
        time_ps += evidence.times.of(LaunchReportWork(pe, to_host=False)).fixed_ps
    return time_ps


def _copied(evidence: Evidence, sip: int, begin_ps: int, end_ps: int) -> tuple[int, int, int]:
    """The copies of the host in an interval: their number, their bytes, and their time."""
    ops = evidence.ranks[sip].ops
    chosen = ops.text("name").matching(HOST_KINDS.__contains__) & ops.text("engine").equal("host")
    chosen &= (ops["end_ps"] > begin_ps) & (ops["start_ps"] < end_ps)
    rows = np.flatnonzero(chosen)
    commands = evidence.records.table(COMMANDS, sip)
    within = commands.text("kind").matching(HOST_KINDS.__contains__)
    within &= (commands["end_ps"] > begin_ps) & (commands["begun_ps"] < end_ps)
    begins = np.maximum(commands["begun_ps"], begin_ps)[within]
    ends = np.minimum(commands["end_ps"], end_ps)[within]
    copied_ps = length_ps((begins, ends))
    return int(within.sum()), int(ops["nbytes"][rows].sum()), copied_ps


def _command_line(evidence: Evidence, sip: int, begin_ps: int, end_ps: int) -> str:
    commands = evidence.records.table(COMMANDS, sip)
    kinds, lines = commands.text("kind"), commands.text("line")
    return costliest(
        (lines[row], commands["end_ps"].item(row) - commands["begun_ps"].item(row))
        for row in range(len(commands))
        if kinds[row] in HOST_KINDS
        and commands["end_ps"].item(row) > begin_ps
        and commands["begun_ps"].item(row) < end_ps
    )


def _has_command(evidence: Evidence, sip: int, begin_ps: int, end_ps: int) -> bool:
    commands = evidence.records.table(COMMANDS, sip)
    within = commands.text("kind").equal(_MAPS)
    within &= (commands["end_ps"] > begin_ps) & (commands["begun_ps"] < end_ps)
    return bool(within.any())


def _host_line(evidence: Evidence, sip: int, begin_ps: int, end_ps: int) -> str:
    """The statement at which the program of the rank computes in an interval, if it does."""
    steps = evidence.ranks[sip].steps
    within = (steps["program"] == RANK_PROGRAM) & steps.text("operation").equal("host")
    within &= (steps["end_ps"] > begin_ps) & (steps["begin_ps"] < end_ps)
    lines = steps.text("line")
    return costliest(
        (lines[row], steps["end_ps"].item(row) - steps["begin_ps"].item(row))
        for row in np.flatnonzero(within).tolist()
    )


def _launches(evidence: Evidence, gaps: Sequence[LaunchGap]) -> Finding:
    cost_ps = sum(gap.gap_ps for gap in gaps)
    waited_ps = sum(gap.rest_ps for gap in gaps if gap.waits)
    launches = evidence.scope.launches
    kernel_ps = sum(each.time_ps for each in launches) // len(launches)
    names = sorted({each.name for each in launches})
    shown = names[0] if len(names) == 1 else f"{len(names)} kernels"
    text = (
        "one launch with the loop inside the kernel, or with grid="
        if len(names) == 1
        else "fewer kernels: fuse those that follow each other"
    )
    advice = [Advice(text=text, saves_ps=cost_ps)]
    if waited_ps > 0:
        advice.append(
            Advice(
                text="submit the next launch without waiting for the answer of the last one",
                saves_ps=waited_ps,
            )
        )
    return Finding(
        rule="launches",
        kind=LossKind.REDESIGN,
        cost_ps=cost_ps,
        title=(
            f"launch bound: {len(launches)} launches of {shown}, {_ns(kernel_ps)} ns each, "
            f"{_ns(cost_ps / len(gaps))} ns between them"
        ),
        evidence=(
            f"a launch behind another takes {_ns(sum(g.launch_ps for g in gaps) / len(gaps))} ns; "
            f"the program waits for the answer before {sum(g.waits for g in gaps)} of {len(gaps)}"
        ),
        line=costliest((gap.line, gap.gap_ps) for gap in gaps),
        advice=advice,
    )


def _copies(evidence: Evidence, gaps: Sequence[LaunchGap]) -> Finding:
    copies, nbytes = sum(g.copies for g in gaps), sum(g.copied_bytes for g in gaps)
    copied_ps = sum(g.copied_ps for g in gaps)
    peak = float(evidence.file.number("sip.io_chiplet.pcie_ep.bw_gbs"))
    # A copy may begin before the gap, so its bytes may exceed those of the time in the gap.
    rate = min(nbytes * PS_PER_NS / copied_ps, peak) if copied_ps else 0.0
    small = rate * 2 < peak
    text = (
        "copy once with more bytes: the latency of a copy exceeds the time of its bytes"
        if small
        else "keep the data on the device between launches, or copy on another stream beside them"
    )
    return _defect(
        "copies",
        gaps,
        title=f"host copies between launches: {copies:,} copies, {nbytes:,} B",
        evidence=f"{rate:.1f} GB/s of {peak:g} GB/s of PCIe; no kernel runs in this time",
        advice=text,
    )


def _mappings(gaps: Sequence[LaunchGap]) -> Finding:
    return _defect(
        "mappings",
        gaps,
        title=f"tensors are mapped between launches: before {len(gaps)} of them",
        evidence="a tensor is mapped at the first launch that uses it; no kernel runs in this time",
        advice="allocate the tensors once, and use them again",
    )


def _host(gaps: Sequence[LaunchGap]) -> Finding:
    return _defect(
        "host",
        gaps,
        title=f"the host computes between launches: before {len(gaps)} of them",
        evidence="the rank program is in computations of the host, and no kernel runs",
        advice="compute it on the device, or before the launch in front of it",
    )


def _defect(
    rule: str, gaps: Sequence[LaunchGap], *, title: str, evidence: str, advice: str
) -> Finding:
    """The loss of gaps that something else than the launches themselves fills."""
    cost_ps = sum(gap.rest_ps for gap in gaps)
    return Finding(
        rule=rule,
        kind=LossKind.DEFECT,
        cost_ps=cost_ps,
        title=title,
        evidence=evidence,
        line=costliest((gap.line, gap.rest_ps) for gap in gaps),
        advice=(Advice(text=advice, saves_ps=cost_ps),),
    )


def _ns(time_ps: float) -> str:
    return f"{time_ps / PS_PER_NS:,.0f}"
