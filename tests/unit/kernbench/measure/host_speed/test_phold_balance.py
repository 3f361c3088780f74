"""The share of busy time which the lookahead of PHOLD allows."""

from dataclasses import replace

import pytest

from kernbench.measure.host_speed.phold_balance import balance
from kernbench.measure.host_speed.phold_model import Workload

WORKLOAD = Workload(
    entities=2, jobs=1, lookahead_ps=1000, mean_ps=1, spread=0.0, end_ps=20_000, work=7, seed=3
)


def test_one_lp_never_waits() -> None:
    assert balance(WORKLOAD, 1) == 1.0


def test_lps_with_equal_work_in_every_lookahead_are_always_busy() -> None:
    assert balance(WORKLOAD, 2) == pytest.approx(1.0, abs=0.06)


def test_lps_with_unequal_work_wait() -> None:
    # Three entities on one LP, two on the other one.
    assert balance(replace(WORKLOAD, entities=5), 2) == pytest.approx(5 / 6, abs=0.05)


def test_a_greater_lookahead_evens_out_what_comes_by_chance() -> None:
    uneven = replace(WORKLOAD, entities=16, mean_ps=1000, spread=0.5)
    near = balance(uneven, 2)
    far = balance(replace(uneven, jobs=8), 2)
    assert near < far < 1
