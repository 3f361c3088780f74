"""Measures one layer at headline scale: simulates it, checks its result, splits its time."""

from collections.abc import Mapping, Sequence

import numpy as np

from kernbench.benches.attention.reference import grouped_attention
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import simulate
from kernbench.studies.milestone_gqa_llama70b.headline_halves import head_errors
from kernbench.studies.milestone_gqa_llama70b.headline_points import HeadlinePoint
from kernbench.studies.milestone_gqa_llama70b.headline_program import (
    LayerOutcome,
    LayerTensors,
    layer_program,
    layer_tensors,
)
from kernbench.studies.milestone_gqa_llama70b.headline_rows import HeadlineRow
from kernbench.studies.milestone_gqa_llama70b.headline_theory import attention_bounds
from kernbench.studies.milestone_gqa_llama70b.op_log import OpLogCounts
from kernbench.studies.milestone_gqa_llama70b.time_parts import WorkIntervals
from runtime.core.trace import OpRecord


def measure(point: HeadlinePoint) -> HeadlineRow:
    """Simulate one point."""
    tensors = layer_tensors(point) if point.has_data else None
    counts, works = OpLogCounts(), WorkIntervals()

    def observe(sip: int, records: Sequence[OpRecord]) -> None:
        counts.add(sip, records)
        works.add(sip, records)

    # See `HeadlinePoint`.
    sips = point.sips if point.has_data else 1
    world = simulate(
        layer_program(point, tensors),
        sips,
        topology=point.topology if point.has_data else point.one_sip,
        ccl=point.ccl,
        data=point.has_data,
        on_records=observe,
    )
    head = head_errors(point) if point.by_halves else None
    return HeadlineRow(
        panel=point.panel,
        n_ranks=point.sips,
        batch=point.layer.batch,
        tokens=point.layer.tokens,
        op_log_summary=counts.summary(point.sips // sips),
        kernel_ps=max(outcome.kernel_ps for outcome in world.returned.values()),
        parts=works.parts(),
        bounds=attention_bounds(
            TopologyFile.of(point.topology),
            point.layer,
            point.sips,
            is_decode=point.panel.is_decode,
        ),
        error=None if tensors is None else largest_error(tensors, point, world.returned),
        head_error=None if head is None else head.exact,
        halves_error=None if head is None else head.halves,
    )


def largest_error(
    tensors: LayerTensors, point: HeadlinePoint, outcomes: Mapping[int, LayerOutcome]
) -> float:
    """The largest absolute difference of all ranks from dense attention in float64."""
    parts = [outcome.result for _, outcome in sorted(outcomes.items())]
    result = np.concatenate([part for part in parts if part is not None]).reshape(tensors.q.shape)
    errors = list[float]()
    for user in range(point.layer.batch):
        # (heads, queries, depth), and (KV heads, tokens, depth).
        q = tensors.q[:, user].reshape(point.layer.heads, -1, point.layer.depth)
        exact = grouped_attention(
            q, tensors.k[:, user], tensors.v[:, user], causal=not point.panel.is_decode
        )
        found = result[:, user].reshape(exact.shape).astype(np.float64)
        errors.append(float(np.abs(found - exact).max()))
    return max(errors)
