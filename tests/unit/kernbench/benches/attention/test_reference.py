"""Dense attention in float64, by hand and by its laws."""

import numpy as np
import pytest

from kernbench.benches.attention.reference import attention, grouped_attention
from tests.support.attention_rings import uniform


def test_scores_are_divided_by_the_root_of_the_depth():
    q, k = np.array([[2.0, 0, 0, 0]]), np.array([[1.0, 0, 0, 0], [0, 0, 0, 0]])
    # Scores 2 / sqrt(4) and 0: the weights are e / (e + 1) and 1 / (e + 1).
    weight = np.e / (np.e + 1)
    assert attention(q, k, np.array([[1.0], [0.0]]))[0, 0] == pytest.approx(weight, abs=1e-15)


def test_the_last_query_sees_all_keys_and_the_first_of_as_many_sees_one():
    q, k, v = (uniform(seed, 5, 4) for seed in range(3))
    causal = attention(q, k, v, causal=True)
    np.testing.assert_allclose(causal[0], v[0], atol=1e-15)
    np.testing.assert_allclose(causal[4:], attention(q[4:], k, v), atol=1e-15)
    np.testing.assert_allclose(attention(q[3:], k, v, causal=True), causal[3:], atol=1e-15)


def test_a_query_head_uses_the_keys_of_its_group():
    q, k, v = uniform(0, 6, 2, 4), uniform(1, 2, 3, 4), uniform(2, 2, 3, 4)
    grouped = grouped_attention(q, k, v)
    for head, kv_head in enumerate((0, 0, 0, 1, 1, 1)):
        np.testing.assert_array_equal(grouped[head], attention(q[head], k[kv_head], v[kv_head]))
    assert not np.allclose(attention(q[2], k[1], v[1]), grouped[2])
