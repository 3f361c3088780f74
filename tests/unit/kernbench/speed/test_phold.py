"""PHOLD has one digest for every distribution over LPs."""

import pytest

from kernbench.speed.phold import LpResult, PholdResult, Workload, logical_process, run_processes
from tests.support.transport_memory import MemoryNetwork

WORKLOAD = Workload(
    entities=8, jobs=2, lookahead_ps=1000, mean_ps=500, spread=0.5, end_ps=40_000, work=0, seed=3
)


def run_in_this_thread(workload: Workload, lps: int) -> PholdResult:
    network = MemoryNetwork(lps)
    parts = [logical_process(workload, lp, lps, network.transport(lp)) for lp in range(lps)]
    while not all(loop.ended for loop, _ in parts):
        for loop, _ in parts:
            if not loop.ended:
                loop.round()
    return PholdResult(
        tuple(LpResult(model.digests(), loop.statistics, 1.0) for loop, model in parts)
    )


@pytest.mark.parametrize("lps", [2, 3, 4])
def test_the_digest_is_the_same_for_any_number_of_lps(lps: int):
    alone, split = run_in_this_thread(WORKLOAD, 1), run_in_this_thread(WORKLOAD, lps)
    assert (split.digest, split.events) == (alone.digest, alone.events)
    assert sum(lp.statistics.messages for lp in split.lps) > 20


def test_the_digest_depends_on_the_workload():
    other = Workload(
        entities=8,
        jobs=2,
        lookahead_ps=1000,
        mean_ps=500,
        spread=0.5,
        end_ps=40_000,
        work=0,
        seed=4,
    )
    assert run_in_this_thread(WORKLOAD, 1).digest != run_in_this_thread(other, 1).digest


@pytest.mark.slow
@pytest.mark.multiproc
@pytest.mark.parametrize("lps", [1, 2])
def test_processes_over_zeromq_give_the_digest_of_one_thread(lps: int):
    assert run_processes(WORKLOAD, lps).digest == run_in_this_thread(WORKLOAD, 1).digest
