"""The workload that the parameters of the measurement describe."""

from argparse import Namespace

import pytest

from kernbench.measure.host_speed.phold import jobs_of, work_of


@pytest.mark.parametrize(("window_events", "jobs"), [(1, 1), (40, 5), (400, 50)])
def test_jobs_follow_from_the_events_of_a_window(window_events: float, jobs: int):
    # A job hops every 20 ns on average, so it causes half an event in 10 ns; 16 entities a process.
    given = Namespace(lookahead_ns=10, mean_ns=10, entities=32, lps=2)
    assert jobs_of(window_events, given) == jobs


def test_longer_events_are_more_digests():
    assert work_of(0.0) == 0 < work_of(20.0) < work_of(20_000.0)
