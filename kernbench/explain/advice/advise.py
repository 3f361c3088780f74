"""All that `why` has to advise on a part of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernbench.explain.advice.evidence import Evidence
from kernbench.explain.advice.finding import Advice, Finding, ranked
from kernbench.explain.advice.rules import findings
from kernbench.explain.advice.scope import RunScope, Selection, scope_of
from kernbench.explain.records import RecordedRun
from kernbench.explain.why.cursor import RunIndex
from kernbench.explain.why.piece import PathPiece

_MACHINE_CHANGES = 4
"""Numbers of the machine that a report advises to change."""


@dataclass(frozen=True, kw_only=True)
class ScopeAdvice:
    """A part of a run: its critical path, the losses in it, and what to change, the best first."""

    scope: RunScope
    pieces: Sequence[PathPiece]
    findings: Sequence[Finding]
    advice: Sequence[Advice]


def advise(
    records: RecordedRun, selection: Selection, index: RunIndex | None = None
) -> ScopeAdvice:
    """The advice on a part of a run. Raises `UsageError` for a part that the run does not have."""
    scope = scope_of(records, selection)
    evidence = Evidence(records, scope, index or RunIndex.of(records))
    losses = ranked(findings(evidence), scope.total_ps)
    advice = [each for loss in losses for each in loss.advice]
    named = {each.change.key for each in advice if each.change is not None}
    for prediction in evidence.predictor.classes(_MACHINE_CHANGES):
        change = prediction.change
        if change.key not in named:
            text = f"{change.key}={change.after:g}"
            advice.append(Advice(text=text, saves_ps=-prediction.predicted_ps, change=change))
    return ScopeAdvice(
        scope=scope,
        pieces=evidence.pieces,
        findings=losses,
        advice=sorted(advice, key=lambda each: (-each.saves_ps, each.text)),
    )
