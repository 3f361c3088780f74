"""PHOLD has one digest for every distribution over LPs."""

from argparse import Namespace
from dataclasses import replace

import pytest

from kernbench.speed.phold import (
    LpResult,
    PholdResult,
    Workload,
    jobs_of,
    logical_process,
    parts_of,
    work_of,
)
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
        tuple(LpResult(model.digests(), loop.statistics, 1.0, 1.0) for loop, model in parts)
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


def test_apart_every_lp_has_its_entities_for_itself():
    parts = parts_of(replace(WORKLOAD, entities=7), 3)
    assert [part.entities for part in parts] == [3, 2, 2]
    assert {replace(part, entities=7) for part in parts} == {replace(WORKLOAD, entities=7)}


@pytest.mark.parametrize(("window_events", "jobs"), [(1, 1), (40, 5), (400, 50)])
def test_jobs_follow_from_the_events_of_a_window(window_events: float, jobs: int):
    # A job hops every 20 ns on average, so it causes half an event in 10 ns; 16 entities a process.
    given = Namespace(lookahead_ns=10, mean_ns=10, entities=32, lps=2)
    assert jobs_of(window_events, given) == jobs


def test_longer_events_are_more_digests():
    assert work_of(0.0) == 0 < work_of(20.0) < work_of(20_000.0)
