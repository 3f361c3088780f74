"""The arithmetic of softmax by blocks, against float64."""

from collections.abc import Sequence

import numpy as np

from kernbench import tl
from kernbench.benches.attention.reference import attention
from runtime.device.kernels.attention.online_softmax import (
    MASKED,
    SoftmaxState,
    attended,
    block_state,
    combined,
    extended,
)
from runtime.language.value import Array
from tests.support.attention_rings import run_on_one_pe, uniform

ROWS, KEYS, DEPTH = 3, 24, 8
SCORES, V = 4 * uniform(0, ROWS, KEYS), uniform(1, KEYS, DEPTH)
TOLERANCE = 2e-6
"""The tolerance of attention in float32; scores of at most 4 have no larger rounding errors."""


def blocks(cuts: Sequence[int]) -> list[slice]:
    return [slice(*ends) for ends in zip((0, *cuts), (*cuts, KEYS), strict=True)]


def exact(scores: Array) -> Array:
    # With q = 2 times the unit matrix and depth 4 the scores of attention are k transposed.
    wide = np.zeros((4, KEYS))
    wide[:ROWS] = scores
    return attention(2 * np.eye(4)[:ROWS], wide.T, V)


def online(scores: tl.Value, v: tl.Value) -> tl.Value:
    state: SoftmaxState | None = None
    for part in blocks((8, 9)):
        block = scores[:, part], v[part]
        state = extended(state, *block) if state else block_state(*block)
    assert state is not None
    return attended(state, tl.float32)


def split(scores: tl.Value, v: tl.Value) -> tl.Value:
    states = [block_state(scores[:, part], v[part]) for part in blocks((16,))]
    return attended(combined(states), tl.float32)


def test_blocks_one_after_the_other_give_dense_attention():
    np.testing.assert_allclose(run_on_one_pe(online, SCORES, V), exact(SCORES), atol=TOLERANCE)


def test_states_of_parts_combine_to_dense_attention():
    np.testing.assert_allclose(run_on_one_pe(split, SCORES, V), exact(SCORES), atol=TOLERANCE)


def test_masked_blocks_contribute_nothing_wherever_they_are():
    for hidden in (slice(0, 16), slice(16, KEYS)):
        scores = SCORES.copy()
        scores[:, hidden] = MASKED
        for way in (online, split):
            result = run_on_one_pe(way, scores, V)
            np.testing.assert_allclose(result, exact(scores), atol=TOLERANCE)


def test_a_number_added_to_all_scores_changes_no_bit_and_does_not_overflow():
    # Multiples of 1/8: exact in float32 beside 1000.
    scores = np.round(SCORES * 8) / 8
    for way in (online, split):
        plain, shifted = (run_on_one_pe(way, each, V) for each in (scores, scores + 1000))
        np.testing.assert_array_equal(plain, shifted)
