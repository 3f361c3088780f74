"""Ring attention on a small machine, simulated: right, and the same times without data."""

import pytest

from kernbench.oracle.theory.topology_file import TopologyFile
from kernbench.studies.parameter_study import TopologyText
from kernbench.studies.ring_attention import rows as points
from kernbench.studies.ring_attention.rows import Division, RingRow, RingSizes
from kernbench.studies.ring_attention.study import RingAttentionStudy
from tests.support.runs import ROOT

ONE_CUBE = TopologyFile.of((ROOT / "topology.yaml").read_text("utf-8")).with_values(
    {"sip.cube_mesh": {"w": 1, "h": 1}}
)
SIZES = RingSizes(heads=2, depth=128, tokens=(384,), sips=(3,))
"""Three SIPs: states are carried over more than one step."""


def measured(division: Division) -> RingRow:
    found = points.plan_points(TopologyText("topology.yaml", ONE_CUBE.text), SIZES)
    [point] = [each for each in found if each.division is division]
    return RingAttentionStudy().measure(point)


@pytest.mark.parametrize("division", Division)
def test_a_layer_is_right_and_takes_the_same_time_without_data(
    division: Division, monkeypatch: pytest.MonkeyPatch
):
    row = measured(division)
    assert row.faults == []
    assert row.error is not None
    assert 0 < row.error < 1e-3
    assert 0 < row.exposed_ps < row.layer_ps
    first, *_, last = row.kernels_ps
    if division is Division.CONTIGUOUS:
        # SIP 0 computes in one step of three.
        assert first < last / 2
    elif division is Division.FULL:
        assert first == last
    else:
        # Scores are equal; short steps of many blocks take a little longer than those of few.
        assert first == pytest.approx(last, rel=0.1)
    monkeypatch.setattr(points, "CHECKED_SCORES", 0)
    without = measured(division)
    assert without.error is None
    assert (without.layer_ps, without.kernels_ps) == (row.layer_ps, row.kernels_ps)
