"""The all-reduce study on real chips."""

import pytest

from kernbench.studies.milestone_1h_ccl.sweep import Plan, plan_sweep, simulate_sweep
from runtime.core.config_file import default_file, read_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def test_the_smallest_all_reduces_are_right_and_as_long_as_their_closed_forms_say():
    text, ccl = read_text(default_file("topology.yaml")), read_text(default_file("ccl.yaml"))
    whole = plan_sweep("topology.yaml", text, ccl, 1024)
    ring, intercube = (
        next(point for point in whole.points if point.algorithm == name)
        for name in ("ring", "intercube")
    )
    plan = Plan(whole.source, whole.topology_hash, (ring, intercube))
    sweep = simulate_sweep(plan, 2, 0)
    assert sweep == simulate_sweep(plan, 1, 0)
    for row in sweep.rows:
        assert row.faults == []
        assert row.time_ps >= row.least_ps > 0
    by_ring, by_intercube = sweep.rows
    assert by_ring.parts is not None
    assert by_ring.time_ps == pytest.approx(by_ring.parts.total_ps, rel=0.02)
    assert by_intercube.parts is None
    # A slot of 64 B is copied through the port of TCM twice, after the start of the DMA.
    assert by_ring.slot_out_ps == 2000 + 2 * 64 * 1000 // 512
