"""Measures one layer: simulates it, and compares its result with float64 if it has data."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernbench.benches.attention.queues import with_hypercube
from kernbench.simulation import no_records, simulate
from kernbench.studies.llama70b_layer.program import PARTS, LayerRun, layer_program
from kernbench.studies.llama70b_layer.reference import layer_result
from kernbench.studies.llama70b_layer.rows import LayerPart, LayerRow
from kernbench.studies.llama70b_layer.shape import LayerShape
from kernbench.studies.llama70b_layer.theory import part_bounds
from kernbench.studies.llama70b_layer.weights import (
    LayerInputs,
    LayerWeights,
    random_inputs,
    random_weights,
)
from kernbench.studies.sip_count import sip_count
from runtime.core.config.config_file import default_file, read_text


@dataclass(frozen=True)
class LayerPoint:
    """A layer on `sips` SIPs of a topology file, given as text."""

    topology: str
    shape: LayerShape
    sips: int
    has_data: bool

    @property
    def cost(self) -> int:
        """Multiply-adds, which take longer with data; tiles of one token are as many as of 32.
        SIPs divide them, but each one has exchanges and launches of its own.
        """
        products = self.shape.weights * max(32, self.shape.tokens) * (8 if self.has_data else 1)
        return products * (8 + self.sips)

    def __str__(self) -> str:
        return (
            f"{self.shape.hidden} columns, {self.shape.tokens} new tokens of "
            f"{self.shape.context}, {sip_count(self.sips)}"
        )


def measure(point: LayerPoint) -> LayerRow:
    """Simulate one point."""
    shape = point.shape
    data = (random_weights(shape), random_inputs(shape)) if point.has_data else None
    world = simulate(
        layer_program(shape, point.sips, data),
        point.sips,
        topology=point.topology,
        ccl=with_hypercube(read_text(default_file("ccl.yaml"))),
        data=point.has_data,
        # The op log of a layer takes more memory than its simulation.
        on_records=no_records,
    )
    # The slowest rank: they meet in the all-reduces.
    slowest = max(world.returned.values(), key=lambda run: sum(run.parts_ps))
    bounds = part_bounds(point.topology, shape, point.sips)
    return LayerRow(
        sips=point.sips,
        tokens=shape.tokens,
        context=shape.context,
        hidden=shape.hidden,
        parts=tuple(
            LayerPart(name, time_ps, bound.time_ps, bound.limit)
            for name, time_ps, bound in zip(PARTS, slowest.parts_ps, bounds, strict=True)
        ),
        error=None if data is None else largest_error(shape, *data, world.returned),
    )


def largest_error(
    shape: LayerShape, weights: LayerWeights, inputs: LayerInputs, runs: Mapping[int, LayerRun]
) -> float:
    """The largest difference of all ranks from float64, relative to the result's root mean
    square.
    """
    exact = layer_result(shape, weights, inputs)
    errors = list[float]()
    for run in runs.values():
        assert run.result is not None
        errors.append(float(np.abs(run.result - exact).max()))
    return max(errors) / float(np.sqrt((exact**2).mean()))
