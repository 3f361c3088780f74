"""The all-reduce study on real chips."""

import pytest

from kernbench.points.driver import PointOptions, measured_points
from kernbench.studies.catalogue import CclFlags
from kernbench.studies.milestone_1h_ccl.study import CclStudy
from kernbench.studies.parameter_study import TopologyText
from runtime.core.config.config_file import default_file, read_text

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def test_the_smallest_all_reduces_are_right_and_take_the_time_of_their_closed_forms():
    study = CclStudy(CclFlags(max_bytes=1024))
    text = read_text(default_file("topology.yaml"))
    points = study.points(TopologyText("topology.yaml", text))
    smallest = [
        next(point for point in points if point.algorithm == name) for name in ("ring", "intercube")
    ]
    there, here = (
        measured_points(study.measurement(), smallest, PointOptions(procs=procs))
        for procs in (2, 1)
    )
    assert there == here
    rows = [here[point] for point in smallest]
    for row in rows:
        assert row.faults == []
        assert row.time_ps >= row.least_ps > 0
    by_ring, by_intercube = rows
    assert by_ring.parts is not None
    assert by_ring.time_ps == pytest.approx(by_ring.parts.total_ps, rel=0.02)
    assert by_intercube.parts is None
    # The ring uses messages in their slots. The others copy them: a slot of 256 B goes through the
    # port of TCM twice, after the start of the DMA.
    assert by_ring.slot_out_ps == 0
    assert by_intercube.slot_out_ps == 2000 + 2 * 256 * 1000 // 512
