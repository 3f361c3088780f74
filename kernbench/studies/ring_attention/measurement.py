"""Measures one layer: simulates it, checks its result against float64."""

from collections.abc import Mapping

import numpy as np

from kernbench.benches.attention.reference import attention
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.simulation import no_records, simulate
from kernbench.studies.ring_attention.points import RingPoint
from kernbench.studies.ring_attention.program import (
    RingOutcome,
    RingTensors,
    ring_program,
    ring_tensors,
)
from kernbench.studies.ring_attention.rows import RingRow
from kernbench.studies.ring_attention.theory import ring_bounds


def measure(point: RingPoint) -> RingRow:
    """Simulate one point."""
    tensors = ring_tensors(point) if point.has_data else None
    world = simulate(
        ring_program(point, tensors),
        point.parts.ranks,
        topology=point.topology,
        data=point.has_data,
        on_records=no_records,
    )
    outcomes: list[RingOutcome] = [outcome for _, outcome in sorted(world.returned.items())]
    last = max(outcomes, key=lambda outcome: outcome.ended_ps)
    layer_ps = last.ended_ps - min(outcome.began_ps for outcome in outcomes)
    return RingRow(
        division=point.division,
        sips=point.parts.ranks,
        tokens=point.parts.tokens,
        layer_ps=layer_ps,
        kernels_ps=tuple(outcome.kernels_ps for outcome in outcomes),
        exposed_ps=layer_ps - last.kernels_ps,
        bounds=ring_bounds(
            TopologyFile.of(point.topology), point.parts, point.heads, point.shape.depth
        ),
        error=None if tensors is None else largest_error(point, tensors, world.returned),
    )


def largest_error(
    point: RingPoint, tensors: RingTensors, outcomes: Mapping[int, RingOutcome]
) -> float:
    """The largest absolute difference of all ranks from dense attention in float64."""
    found = np.full(tensors.q.shape, np.nan)
    for rank, outcome in outcomes.items():
        assert outcome.result is not None, "a run with data"
        found[:, point.parts.positions(rank)] = outcome.result
    causal = point.parts.is_causal
    exact = [attention(*head, causal=causal) for head in zip(*tensors, strict=True)]
    return float(np.abs(found - np.stack(exact)).max())
