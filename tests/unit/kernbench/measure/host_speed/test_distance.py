"""The model of distance: processor time, and a delay for each trip of the critical path."""

import pytest

from kernbench.measure.host_speed.distance import DistantRun


def test_trips_add_their_delay_to_the_time_of_the_busiest_lp(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kernbench.measure.host_speed.distance.usable_cores", lambda: 2)
    run = DistantRun(delay_us=500.0, wall_s=1.0, trips=100, busy_s=(0.5, 0.25), digest="")
    assert run.compute_s == 0.5
    assert run.model_s == pytest.approx(0.5 + 100 * 0.0005)


def test_trips_of_lps_that_share_cores_cost_what_exceeds_their_work(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("kernbench.measure.host_speed.distance.usable_cores", lambda: 2)
    for delay_us, model_s in ((0.0, 8 * 0.5 / 2), (5000.0, 2.0), (50000.0, 0.5 + 100 * 0.05)):
        run = DistantRun(delay_us, wall_s=1.0, trips=100, busy_s=(0.5,) * 8, digest="")
        assert run.model_s == pytest.approx(model_s)
