"""PHOLD in processes gives the digest of one process; apart, it has as many events."""

import pytest

from kernbench.measure.host_speed.phold_model import Workload
from kernbench.measure.host_speed.phold_processes import run_apart, run_processes

WORKLOAD = Workload(
    entities=8, jobs=2, lookahead_ps=1000, mean_ps=500, spread=0.5, end_ps=40_000, work=0, seed=3
)

pytestmark = [pytest.mark.slow, pytest.mark.multiproc]


def test_processes_give_the_digest_of_one():
    together, alone = run_processes(WORKLOAD, 2), run_processes(WORKLOAD, 1)
    assert (together.digest, together.events) == (alone.digest, alone.events)
    assert sum(lp.statistics.messages for lp in together.lps) > 20
    # Promises of one host take no messages.
    assert sum(lp.statistics.null_messages for lp in together.lps) == 0


def test_processes_apart_exchange_nothing():
    apart = run_apart(WORKLOAD, 2)
    assert [lp.statistics.messages for lp in apart.lps] == [0, 0]
    assert apart.events > 200
