"""All that `why` has to advise on a part of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernbench.explain.advice.evidence import Evidence
from kernbench.explain.advice.finding import SHOWN_SHARE, Advice, Finding, ranked
from kernbench.explain.advice.kernel_rows import KernelRows, kernel_rows
from kernbench.explain.advice.loads import ScopeLoad, loads_within
from kernbench.explain.advice.rules import findings
from kernbench.explain.advice.scope import RunScope, RunSelection, scope_of
from kernbench.explain.records import RecordedRun
from kernbench.explain.why.bound import without_waiting_ps
from kernbench.explain.why.cursor import RunIndex
from kernbench.explain.why.piece import PathPiece
from kernbench.oracle.theory.bandwidths import channel_gbs
from kernbench.oracle.theory.paths.routes import link_gbs

_MOST_LINKS = 20
_MACHINE_CHANGES = 4
"""Numbers of the machine that a report advises to change."""


@dataclass(frozen=True, kw_only=True)
class ScopeAdvice:
    """A part of a run: its critical path, the losses in it, and what to change, the best first."""

    scope: RunScope
    pieces: Sequence[PathPiece]
    findings: Sequence[Finding]
    advice: Sequence[Advice]
    kernels: Sequence[KernelRows]
    links: Sequence[tuple[ScopeLoad, float]]
    bound_ps: int
    bound_name: str


def advise(
    records: RecordedRun, selection: RunSelection, index: RunIndex | None = None
) -> ScopeAdvice:
    """The advice on a part of a run. Raises `UsageError` for a part that the run does not have."""
    scope = scope_of(records, selection)
    evidence = Evidence(records, scope, index or RunIndex.of(records))
    losses = ranked(findings(evidence), scope.total_ps)
    least_ps = scope.total_ps // SHOWN_SHARE
    advice = [each for loss in losses for each in loss.advice if each.saves_ps > least_ps]
    named = {each.change.key for each in advice if each.change is not None}
    for prediction in evidence.predictor.classes(_MACHINE_CHANGES):
        change = prediction.change
        if change.key not in named and -prediction.predicted_ps > least_ps:
            text = f"{change.key}={change.after:g}"
            advice.append(Advice(text=text, saves_ps=-prediction.predicted_ps, change=change))
    links = _links(evidence)
    bound_ps, bound_name = _bound(evidence, [load for load, _ in links])
    return ScopeAdvice(
        scope=scope,
        pieces=evidence.pieces,
        findings=losses,
        advice=sorted(advice, key=lambda each: (-each.saves_ps, each.text)),
        kernels=kernel_rows(evidence),
        links=links,
        bound_ps=bound_ps,
        bound_name=bound_name,
    )


def _links(evidence: Evidence) -> list[tuple[ScopeLoad, float]]:
    """The busiest links and memories of the scope, with the bandwidth of each."""
    scope, file = evidence.scope, evidence.file
    links = list[tuple[ScopeLoad, float]]()
    for load in loads_within(evidence.records, scope.begin_ps, scope.end_ps):
        if load.kind == "link":
            links.append((load, float(file.number(link_gbs(load.name)))))
        elif load.kind == "memory":
            links.append((load, float(channel_gbs(file))))
    return links[:_MOST_LINKS]


def _bound(evidence: Evidence, loads: Sequence[ScopeLoad]) -> tuple[int, str]:
    """The least time of the scope: that of its busiest link or memory, or of its longest chain."""
    path_ps = without_waiting_ps(evidence.pieces)
    busiest = loads[0] if loads else None
    if busiest is None or path_ps >= busiest.busy_ps:
        return path_ps, "the steps that wait for each other, without queues"
    return busiest.busy_ps, f"the work of {busiest.kind} {busiest.title}"
