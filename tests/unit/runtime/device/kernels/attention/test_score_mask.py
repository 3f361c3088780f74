"""Masks of a program in the flash loop, on one PE of the mock runtime, against float64."""

import numpy as np
import pytest

from kernbench import mock, tl
from runtime.core.dtypes import float32
from runtime.device.kernels.attention.flash import BlockShape, FlashItem, flash
from runtime.device.kernels.attention.score_mask import ScoreMask
from runtime.language.value import Array
from tests.support.attention_rings import uniform

ROWS, KEYS, DEPTH = 32, 96, 16


def attended(mask: Array, strides: tuple[int, int]) -> tuple[Array, Array, Array]:
    """Unscaled sums of values, sums of exponentials, and the exact probabilities."""
    q, k, v = (uniform(seed, KEYS, DEPTH, dtype=float32) for seed in range(3))
    sums, totals = (np.empty((ROWS, columns), np.float32) for columns in (DEPTH, 1))

    def kernel(q: tl.Pointer, k: tl.Pointer, v: tl.Pointer, mask: tl.Pointer, *out: tl.Pointer):
        item = FlashItem(q, k, v, KEYS, mask=ScoreMask(mask, strides))
        for state in flash([item], BlockShape(ROWS, 32, DEPTH)):
            tl.store(out[0], state.o)
            tl.store(out[1], state.l)

    mock.launch(kernel, q, k, v, mask, sums, totals)
    whole = np.broadcast_to(mask, (ROWS, KEYS))
    scores = (q[:ROWS].astype(np.float64) @ k.T.astype(np.float64)) * DEPTH**-0.5
    scores = np.where(whole, scores, -np.inf) if mask.dtype == bool else scores + whole
    highest = np.maximum(scores.max(1, keepdims=True), -1e300)
    powers = np.exp(scores - highest)
    exact = powers @ v.astype(np.float64) / np.maximum(powers.sum(1, keepdims=True), 1)
    return sums, totals, exact


def drawn(*shape: int) -> Array:
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize(
    ("mask", "strides"),
    [
        (drawn(ROWS, KEYS) > 0, (KEYS, 1)),
        (drawn(ROWS, KEYS).astype(np.float32), (KEYS, 1)),
        (drawn(1, KEYS) > 0, (0, 1)),
        (drawn(ROWS, 1).astype(np.float32), (1, 0)),
    ],
    ids=["bools", "numbers", "a bool for each key", "a number for each query"],
)
def test_scores_have_the_mask_of_the_program(mask: Array, strides: tuple[int, int]):
    sums, totals, exact = attended(mask, strides)
    np.testing.assert_allclose(sums / totals, exact, rtol=0, atol=2e-6)


def test_a_query_without_keys_has_sums_of_zero():
    mask = drawn(ROWS, KEYS) > 0
    mask[5] = False
    sums, totals, exact = attended(mask, (KEYS, 1))
    assert not sums[5].any()
    assert totals[5] == 0
    np.testing.assert_allclose(
        np.delete(sums / np.maximum(totals, 1), 5, 0), np.delete(exact, 5, 0), atol=2e-6
    )
