"""Traffic between hosts, and that it does not depend on the order of the launcher."""

from typing import Any

import pytest

from tests.support.network import Network
from tests.support.node_runs import (
    BENCH,
    ByHand,
    Program,
    in_blocks,
    local_digest,
    median_null_messages,
    round_robin,
)

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.nightly]

RUNS = 5
RING = Program(8, ("--algorithm", "ring", "--min-bytes", "65536", "--max-bytes", "65536"))
MOST_SILENCE = 0.15
"""Share of silence reports and grants in the frames between hosts."""
MOST_NULL_MESSAGES = 1.1
"""The most null messages of ranks dealt round robin, per null message of ranks by host."""


@pytest.mark.timeout(600)
def test_ranks_dealt_round_robin_cost_no_more_null_messages(network: Network, by_hand: ByHand):

    def median(placement: Any) -> float:
        runs = [by_hand.start(placement(network.hosts[:2], 8), BENCH).wait() for _ in range(RUNS)]
        assert {run.succeeded()["digest"] for run in runs} == {local_digest(BENCH)}
        return median_null_messages(runs)

    assert median(round_robin) <= MOST_NULL_MESSAGES * median(in_blocks)


@pytest.mark.parametrize("program", [BENCH, RING])
def test_few_of_the_frames_between_hosts_are_about_silence(
    network: Network, by_hand: ByHand, program: Program
):
    report = by_hand.start(in_blocks(network.hosts[:2], 8), program).succeeded()
    traffic = report["between_hosts"]
    assert traffic["frames"] > 0
    assert traffic["silence_frames"] <= MOST_SILENCE * traffic["frames"]
