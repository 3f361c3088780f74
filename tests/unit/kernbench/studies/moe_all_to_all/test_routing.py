"""The routing: the Zipf law, the weights, and what each rank sends."""

import numpy as np

from kernbench.studies.moe_all_to_all.routing import (
    DispatchPlan,
    drawn_experts,
    drawn_weights,
    skew,
)


def test_the_first_choices_follow_the_zipf_law():
    first = drawn_experts((4, 4096, 1), 4, 1.0, 1)
    found = np.bincount(first.ravel(), minlength=4) / first.size
    # 1, 1/2, 1/3, 1/4 over their sum 25/12. Of 16,384 draws the standard deviation is below 0.004.
    np.testing.assert_allclose(found, np.array([12, 6, 4, 3]) / 25, atol=0.016)


def test_a_token_has_different_experts_and_the_seed_decides():
    chosen = drawn_experts((2, 64, 3), 8, 1.5, 1)
    assert all(len(set(token)) == 3 for token in chosen.reshape(-1, 3).tolist())
    assert np.array_equal(chosen, drawn_experts((2, 64, 3), 8, 1.5, 1))
    assert not np.array_equal(chosen, drawn_experts((2, 64, 3), 8, 1.5, 2))


def test_weights_are_multiples_of_a_256th_with_the_sum_1():
    weights = drawn_weights((2, 16, 3), 1)
    assert weights.shape == (2, 16, 3)
    assert np.array_equal(weights * 256 % 1, np.zeros(weights.shape))
    assert np.array_equal(weights.sum(axis=2), np.ones((2, 16)))


def test_a_rank_sends_its_copies_by_expert():
    # 4 experts on 2 ranks: 0 and 1 on rank 0, 2 and 3 on rank 1.
    plan = DispatchPlan.of(np.array([[[3, 0], [1, 0]], [[2, 3], [3, 1]]]), 4)
    assert plan.order.tolist() == [[1, 3, 2, 0], [3, 0, 1, 2]]
    assert plan.rows == ((3, 1), (1, 3))
    assert plan.loads == (4, 4)
    assert skew((6, 2)) == 1.5
