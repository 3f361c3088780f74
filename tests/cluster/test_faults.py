"""A network or a process fails, on a busy machine: everything ends within five seconds, and every
process prints why; without a fault nothing is noticed.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from runtime.core.wallclock import sleep_s
from tests.support.faults import (
    FAULTS,
    LATEST_S,
    NOTICED_S,
    begun_run,
    busy_cores,
    check_reasons,
    check_reasons_of_waiting,
    check_report,
    seconds_until_ended,
    waiting_run,
)
from tests.support.network import Network
from tests.support.node_runs import BENCH, ByHand, in_blocks, local_digest

pytestmark = [pytest.mark.slow, pytest.mark.multiproc, pytest.mark.nightly]


@pytest.fixture(autouse=True, scope="module")
def _busy() -> Iterator[None]:
    with busy_cores():
        yield


@pytest.mark.parametrize("name", FAULTS)
def test_every_process_ends_in_time_and_prints_why(
    network: Network,
    by_hand: ByHand,
    tmp_path: Path,
    seconds_of_faults: dict[str, list[float]],
    name: str,
    number: int,
):
    draw = Random(f"{name} {number}")
    run = begun_run(by_hand, network, tmp_path)
    fault = FAULTS[name](run, draw)
    sleep_s(draw.uniform(0, LATEST_S))
    seconds = seconds_until_ended(run, fault)
    seconds_of_faults[name].append(seconds)
    check_reasons(run, fault)
    if run.processes[0] is not fault.silenced:
        check_report(run)
    if fault.silenced and fault.stopped:
        # It notices that the run is over, and removes what is left of it on its host.
        fault.silenced.resume()
        assert fault.silenced.wait(NOTICED_S) != 0
        check_reasons(run, replace(fault, silenced=None))
    assert seconds < NOTICED_S


@pytest.mark.parametrize("name", FAULTS)
def test_a_process_that_has_joined_is_missed_while_others_have_not_come(
    network: Network, by_hand: ByHand, name: str, number: int
):
    run = waiting_run(by_hand, network)
    fault = FAULTS[name](run, Random(f"{name} {number}"))
    assert seconds_until_ended(run, fault) < NOTICED_S
    check_reasons_of_waiting(run, fault)
    if fault.silenced and fault.stopped:
        fault.silenced.resume()
        assert fault.silenced.wait(NOTICED_S) != 0


def test_a_busy_machine_is_no_fault(network: Network, by_hand: ByHand, undisturbed: int):
    report = by_hand.start(in_blocks(network.hosts[:2], 4), BENCH).succeeded()
    assert report["digest"] == local_digest(BENCH)
