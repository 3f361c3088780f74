"""One layer on a small machine, simulated: right, and the same times without data."""

import pytest

from kernbench.benches.attention.layer import AttentionLayer, PeGrid
from kernbench.benches.attention.queues import with_hypercube
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_gqa_llama70b import headline_rows
from kernbench.studies.milestone_gqa_llama70b.headline import HeadlineStudy
from kernbench.studies.milestone_gqa_llama70b.headline_rows import HeadlinePoint
from kernbench.studies.milestone_gqa_llama70b.op_log import AttentionPanel
from tests.support.runs import ROOT

ONE_CUBE = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8")).with_values(
    {"sip.cube_mesh": {"w": 1, "h": 1}}
)


def point(panel: AttentionPanel, tokens: int, kv_heads: int = 2) -> HeadlinePoint:
    """A layer with two heads a group, on two SIPs of one cube."""
    layer = AttentionLayer(heads=2 * kv_heads, kv_heads=kv_heads, depth=128, batch=1, tokens=tokens)
    return HeadlinePoint(
        topology=ONE_CUBE.on_a_ring(2).text,
        ccl=with_hypercube((ROOT / "ccl.yaml").read_text("utf-8")),
        panel=panel,
        layer=layer,
        sips=2,
        grid=PeGrid(1, 8),
    )


@pytest.mark.parametrize(
    ("panel", "tokens"),
    [(AttentionPanel.SINGLE_USER_PREFILL, 256), (AttentionPanel.SINGLE_USER_DECODE, 512)],
)
def test_a_layer_is_right_and_takes_the_same_time_without_data(
    panel: AttentionPanel, tokens: int, monkeypatch: pytest.MonkeyPatch
):
    row = HeadlineStudy().measure(point(panel, tokens))
    assert row.faults == []
    assert row.error is not None
    assert 0 < row.error < 1e-3
    assert row.parts.total_ps == pytest.approx(row.kernel_ps)
    # Prefill: 2 heads x 8 blocks of 32 queries and at most 256 keys on each of 2 SIPs. Decode: a
    # part of the keys on each of 16 PEs. Both are one step, with two products.
    counts, steps = row.op_log_summary, 16 if panel.is_decode else 32
    assert counts.gemm_count == 2 * steps
    # Loads of q, k and v. Of the 256 keys of a prefill 32 lie on each of 8 PEs, and 8 PEs compute
    # a head: its blocks see 1 to 8 parts. The keys of a decode lie on the own PE.
    parts = steps if panel.is_decode else 2 * 2 * sum(range(1, 9))
    assert counts.dma_read_count == steps + 2 * parts
    assert (counts.ipcq_send_count > 0) == panel.is_decode
    assert counts.ipcq_send_count == counts.ipcq_recv_count
    # Without data one of the two SIPs is simulated.
    monkeypatch.setattr(headline_rows, "CHECKED_SCORES", 0)
    without = HeadlineStudy().measure(point(panel, tokens))
    assert without.error is None
    assert (without.kernel_ps, without.parts, without.op_log_summary) == (
        row.kernel_ps,
        row.parts,
        counts,
    )
