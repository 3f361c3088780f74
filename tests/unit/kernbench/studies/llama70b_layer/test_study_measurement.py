"""A scaled-down layer, simulated and compared with float64."""

from dataclasses import replace

import pytest

from kernbench.benches.decoder_layer.attention import WIDTH
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.llama70b_layer.program import PARTS, LayerRun
from kernbench.studies.llama70b_layer.rows import TOLERANCE
from kernbench.studies.llama70b_layer.study import (
    SCALED_CUBES,
    SCALED_DOWN,
    SCALED_TOKENS,
    LayerPoint,
    LayerStudy,
    largest_error,
    layer_result,
    prefill_of,
)
from kernbench.studies.llama70b_layer.weights import random_inputs, random_weights
from runtime.core.config.config_file import default_file, read_text

SHAPES = {"decode": SCALED_DOWN, "prefill": prefill_of(SCALED_DOWN, SCALED_TOKENS)}


def point(phase: str, sips: int) -> LayerPoint:
    file = TopologyFile.of(read_text(default_file("topology.yaml")))
    text = file.with_values({"sip.cube_mesh": SCALED_CUBES}).on_a_ring(sips).text
    return LayerPoint(text, SHAPES[phase], sips, has_data=True)


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "sips"), [("decode", 1), ("decode", 2), ("prefill", 2)])
def test_a_layer_is_right_against_float64(phase: str, sips: int):
    row = LayerStudy().measure(point(phase, sips))
    assert row.faults == []
    assert row.error is not None
    assert 0 < row.error < TOLERANCE
    assert tuple(part.name for part in row.parts) == PARTS
    assert row.time_ps == sum(part.time_ps for part in row.parts)
    # One SIP has nothing to reduce.
    assert (row.exposed_ps > 0) == (sips > 1)


@pytest.mark.slow
def test_a_prefill_of_more_keys_than_a_block_of_scores_is_right():
    file = TopologyFile.of(read_text(default_file("topology.yaml")))
    text = file.with_values({"sip.cube_mesh": {"w": 1, "h": 1}}).on_a_ring(1).text
    narrow = replace(SCALED_DOWN, hidden=256, inner=256, heads=4, kv_heads=1)
    shape = prefill_of(narrow, 384)
    assert shape.tokens > WIDTH
    row = LayerStudy().measure(LayerPoint(text, shape, 1, has_data=True))
    assert row.faults == []


def test_a_wrong_result_is_a_fault():
    shape = SHAPES["decode"]
    data = random_weights(shape), random_inputs(shape)
    exact = layer_result(shape, *data)
    right = LayerRun((), exact)
    wrong = LayerRun((), exact * 1.01)
    assert largest_error(shape, *data, {0: right, 1: right}) == 0
    assert largest_error(shape, *data, {0: right, 1: wrong}) > TOLERANCE
