"""Advice on a part of a run for programs: JSON with stable keys, times in integer picoseconds."""

from typing import Any

from kernbench.explain.advice.advise import ScopeAdvice
from kernbench.explain.advice.finding import Advice, Finding
from kernbench.explain.advice.kernel_rows import KernelRows
from kernbench.explain.advice.source_text import SourceText
from kernbench.explain.why.shares import by_kind, by_line, shares


def scope_json(advice: ScopeAdvice, source: SourceText) -> dict[str, Any]:
    """The advice as a mapping; docs/internals/records.md lists its keys."""
    scope = advice.scope
    return {
        "title": scope.title,
        "around": scope.around,
        "begin_ps": scope.begin_ps,
        "end_ps": scope.end_ps,
        "total_ps": scope.total_ps,
        "losses": [_loss(each, source) for each in advice.findings],
        "change": [_advice(each) for each in advice.advice],
        "kernels": [_kernel(each) for each in advice.kernels],
        "path": {
            title: [
                {"name": share.name, "length_ps": share.length_ps, "pieces": share.pieces}
                for share in shares(advice.pieces, key)
            ]
            for title, key in (("by_kind", by_kind), ("by_line", by_line))
        },
        "links": [
            {
                "sip": load.sip,
                "name": load.name,
                "kind": load.kind,
                "bytes": load.nbytes,
                "busy_ps": load.busy_ps,
                "queued_ps": load.queued_ps,
                "peak_gbs": peak_gbs,
            }
            for load, peak_gbs in advice.links
        ],
        "bound": {"bound_ps": advice.bound_ps, "is": advice.bound_name},
    }


def _loss(finding: Finding, source: SourceText) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "kind": finding.kind.name.lower(),
        "cost_ps": finding.cost_ps,
        "title": finding.title,
        "evidence": finding.evidence,
        "line": finding.line,
        "text": source.of(finding.line),
    }


def _advice(advice: Advice) -> dict[str, Any]:
    change = advice.change
    return {
        "in": "machine" if advice.of_machine else "program",
        "text": advice.text,
        "saves_ps": advice.saves_ps,
        "key": change.key if change else None,
        "value": change.after if change else None,
        "simulated_ps": advice.simulated_ps,
    }


def _kernel(kernel: KernelRows) -> dict[str, Any]:
    return {
        "name": kernel.name,
        "launches": kernel.launches,
        "time_ps": kernel.time_ps,
        "longest_ps": kernel.longest_ps,
        "max_ps": kernel.max_ps,
        "mean_ps": kernel.mean_ps,
        "slowest": kernel.slowest,
        "pes": [
            {
                "pes": row.pes,
                "slowest": row.name,
                "time_ps": row.time_ps,
                "own_ps": row.own_ps,
                "compute_ps": row.compute_ps,
                "memory_ps": row.memory_ps,
                "message_ps": row.message_ps,
                "barrier_ps": row.barrier_ps,
            }
            for row in kernel.rows
        ],
    }
