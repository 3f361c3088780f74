"""The panels at validation scale, simulated: counts of the log, errors, masks, shifted scores."""

import numpy as np
import pytest

from kernbench.benches.attention.reference import attention
from kernbench.studies.milestone_gqa_llama70b.op_log import AttentionPanel
from kernbench.studies.milestone_gqa_llama70b.validation import (
    SHIFT,
    ValidationPoint,
    ValidationStudy,
    exact_tensors,
)
from kernbench.studies.parameter_study import TopologyText
from tests.support.runs import ROOT

PRODUCTS = {
    AttentionPanel.SINGLE_USER_PREFILL: 128,
    AttentionPanel.SINGLE_USER_DECODE: 16,
    AttentionPanel.MULTI_USER_PREFILL: 32,
    AttentionPanel.MULTI_USER_DECODE: 8,
}
"""2 n² for prefill and 2 n for decode, with n = 8 and 4 ranks."""
TOPOLOGY = TopologyText("topology.yaml", (ROOT / "topology.yaml").read_text("utf-8"))
POINTS = {point.panel: point for point in ValidationStudy().points(TOPOLOGY)}


@pytest.mark.parametrize("panel", AttentionPanel)
def test_a_panel_has_its_counts_and_is_right(panel: AttentionPanel):
    row = ValidationStudy().measure(POINTS[panel])
    counts, ranks = row.op_log_summary, {True: 8, False: 4}[panel.is_single_user]
    assert (row.n_ranks, counts.gemm_count) == (ranks, PRODUCTS[panel])
    # K and V pass n - 1 times from each rank, or one message with the state of a decode.
    messages = (1 if panel.is_decode else 2) * ranks * (ranks - 1)
    assert counts.ipcq_send_count == counts.ipcq_recv_count == messages
    assert (counts.dma_read_count, counts.dma_write_count) == (3 * ranks, ranks)
    assert 0 < row.f16_error <= 1e-3
    assert 0 < row.f32_error <= 2e-6
    assert (row.masked_error is not None) == panel.is_decode
    assert row.faults == []


@pytest.mark.parametrize("panel", AttentionPanel)
def test_scores_that_are_shifted_are_exact_in_float32(panel: AttentionPanel):
    point: ValidationPoint = POINTS[panel]
    plain, shifted = exact_tensors(point), exact_tensors(point, SHIFT)
    scores = [q @ k.T / np.sqrt(point.config.d_head) for q, k, _ in (plain, shifted)]
    np.testing.assert_array_equal(scores[1], scores[0] + SHIFT)
    np.testing.assert_array_equal(scores[1].astype(np.float32), scores[1])
    assert scores[0].std() > 0.1
    np.testing.assert_allclose(attention(*plain), attention(*shifted), atol=1e-12)
