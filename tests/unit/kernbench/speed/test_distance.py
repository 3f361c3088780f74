"""The model of distance: processor time, and a delay for each trip of the critical path."""

import pytest

from kernbench.speed.distance import DistantRun


def test_trips_add_their_delay_to_the_time_of_the_busiest_lp(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kernbench.speed.distance.usable_cores", lambda: 2)
    run = DistantRun(delay_us=500.0, wall_s=1.0, trips=100, busy_s=(0.5, 0.25), digest="")
    assert run.compute_s == 0.5
    assert run.model_s == pytest.approx(0.5 + 100 * 0.0005)


def test_more_lps_than_cores_share_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("kernbench.speed.distance.usable_cores", lambda: 2)
    run = DistantRun(delay_us=0.0, wall_s=1.0, trips=9, busy_s=(0.5,) * 8, digest="")
    assert run.model_s == pytest.approx(8 * 0.5 / 2)
