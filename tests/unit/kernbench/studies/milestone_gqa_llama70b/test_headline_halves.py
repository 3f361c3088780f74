"""One head of a long prefill, by halves of its keys."""

import pytest

from kernbench.benches.attention import grouped_prefill
from kernbench.benches.attention.layer import AttentionLayer, PeGrid
from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.milestone_gqa_llama70b.headline import head_errors
from kernbench.studies.milestone_gqa_llama70b.headline_rows import HeadlinePoint
from kernbench.studies.milestone_gqa_llama70b.op_log import AttentionPanel
from runtime.device.kernels.attention.online_softmax import SoftmaxState
from tests.support.runs import ROOT

TOPOLOGY = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8"))
ONE_CUBE = TOPOLOGY.with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
POINT = HeadlinePoint(
    topology=ONE_CUBE.on_a_ring(2).text,
    ccl=(ROOT / "ccl.yaml").read_text("utf-8"),
    panel=AttentionPanel.SINGLE_USER_PREFILL,
    layer=AttentionLayer(heads=8, kv_heads=2, depth=128, batch=1, tokens=320),
    sips=2,
    grid=PeGrid(1, 8),
)


def test_the_halves_of_the_keys_give_the_whole_within_the_rounding_of_float16():
    # Results are less than 1: half a unit in the last place is 2^-12.
    errors = head_errors(POINT)
    assert 0 < errors.exact < 1e-3
    assert 0 < errors.halves <= 2**-11


def test_halves_that_are_not_joined_differ(monkeypatch: pytest.MonkeyPatch):
    def second(one: SoftmaxState, other: SoftmaxState, out: object = None) -> SoftmaxState:
        del one, out
        return other

    monkeypatch.setattr(grouped_prefill, "joined", second)
    assert head_errors(POINT).halves > 1e-2
