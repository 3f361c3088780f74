"""Output of `why` for programs: JSON with stable keys, times in integer picoseconds."""

from collections.abc import Sequence
from typing import Any

from kernbench.explain.records import RecordedRun
from kernbench.explain.why.compare import Change, RunComparison
from kernbench.explain.why.explanation import Explanation
from kernbench.explain.why.load import Load
from kernbench.explain.why.parts import TimePart
from kernbench.explain.why.piece import PathPiece
from kernbench.explain.why.shares import PathShare, by_component, by_kind, by_line, shares
from kernbench.explain.why.what_if import Prediction

VERSION = 2
"""Increases when a key changes its meaning or disappears."""
KEYS = {
    TimePart.COMPUTE: "compute_ps",
    TimePart.MEMORY: "memory_ps",
    TimePart.COMMUNICATION: "communication_ps",
    TimePart.LAUNCH: "launch_ps",
    TimePart.IDLE: "idle_ps",
}
"""The key of each part of a rank's time."""


def run_json(records: RecordedRun) -> dict[str, Any]:
    """The run itself as a mapping; `error` is null unless it has failed."""
    run = records.run
    return {
        "version": VERSION,
        "run": records.name,
        "bench": run.bench,
        "arguments": run.arguments,
        "argv": list(run.argv),
        "sips": run.sips,
        "digest": run.digest,
        "error": run.error,
        "total_ps": records.total_ps,
    }


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """The explanation as a mapping; docs/internals/records.md lists its keys."""
    path, bound = explanation.path, explanation.bound
    return run_json(explanation.records) | {
        "ranks": [
            {"rank": rank.sip} | {KEYS[part]: rank.parts_ps[part] for part in TimePart}
            for rank in explanation.ranks
        ],
        "pes": [
            {"sip": pe.sip, "cube": pe.cube, "pe": pe.pe, "kernel_ps": pe.kernel_ps}
            | {"issue_ps": pe.issue_ps}
            | {KEYS[part]: length for part, length in pe.parts_ps.items()}
            for pe in explanation.pes
        ],
        "path": {
            "unexplained_ps": path.unexplained_ps,
            "by_kind": [_share(each) for each in shares(path.pieces, by_kind)],
            "by_line": [_share(each) for each in shares(path.pieces, by_line)],
            "by_component": [_share(each) for each in shares(path.pieces, by_component)],
            "pieces": [_piece(each) for each in path.pieces],
        },
        "kernels": [
            {"name": each.name, "launches": each.launches, "pes": each.pes}
            | {"time_ps": each.time_ps, "longest_ps": each.longest_ps}
            for each in explanation.kernels
        ],
        "loads": {kind: [_load(each) for each in of] for kind, of in explanation.loads.items()},
        "bound": {
            "bound_ps": bound.bound_ps,
            "is": "path" if bound.is_of_path else "resource",
            "path_ps": bound.path_ps,
            "resource_ps": bound.resource_ps,
            "resource": _load(bound.resource) if bound.resource else None,
        },
    }


def comparison_json(comparison: RunComparison) -> dict[str, Any]:
    """The differences of two runs as a mapping."""

    def rows(changed: Sequence[Change]) -> list[dict[str, Any]]:
        return [
            {"name": each.name, "before_ps": each.before_ps, "after_ps": each.after_ps}
            for each in changed
        ]

    return {
        "version": VERSION,
        "before": comparison.before.records.name,
        "after": comparison.after.records.name,
        "before_ps": comparison.before.total_ps,
        "after_ps": comparison.after.total_ps,
        "parts": rows(comparison.parts),
        "kinds": rows(comparison.kinds),
        "lines": rows(comparison.lines),
        "components": rows(comparison.components),
    }


def what_if_json(records: RecordedRun, predictions: Sequence[Prediction]) -> dict[str, Any]:
    """The predictions for a run as a mapping."""
    return {
        "version": VERSION,
        "run": records.name,
        "total_ps": records.total_ps,
        "what_if": predictions_json(predictions),
    }


def predictions_json(predictions: Sequence[Prediction]) -> list[dict[str, Any]]:
    """Changes of the time of a run, if a number was another one."""
    return [
        {
            "key": each.change.key,
            "before": each.change.before,
            "after": each.change.after,
            "predicted_ps": each.predicted_ps,
            "absorbed_ps": each.absorbed_ps,
            "simulated_ps": each.simulated_ps,
        }
        for each in predictions
    ]


def _share(share: PathShare) -> dict[str, Any]:
    return {"name": share.name, "length_ps": share.length_ps, "pieces": share.pieces}


def _piece(piece: PathPiece) -> dict[str, Any]:
    return {
        "begin_ps": piece.begin_ps,
        "end_ps": piece.end_ps,
        "kind": str(piece.kind),
        "component": piece.component,
        "what": piece.what,
        "cause": piece.cause,
        "sip": piece.sip,
        "cube": piece.cube,
        "pe": piece.pe,
        "line": piece.line,
        "op": piece.op,
        "step": piece.step,
        "command": piece.command,
    }


def _load(load: Load) -> dict[str, Any]:
    return {
        "sip": load.sip,
        "name": load.name,
        "kind": load.kind,
        "busy_ps": load.busy_ps,
        "queued_ps": load.queued_ps,
        "count": load.count,
        "bytes": load.nbytes,
        "peak": load.peak,
        "peak_ps": load.peak_ps,
    }
