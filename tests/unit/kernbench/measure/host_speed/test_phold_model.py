"""PHOLD has one digest for every distribution over LPs."""

from dataclasses import replace

import pytest

from kernbench.measure.host_speed.phold_model import (
    LpResult,
    PholdResult,
    Workload,
    logical_process,
    parts_of,
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
