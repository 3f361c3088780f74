"""The missing order of two streams is reported with `--strict`: on CUDA it would be a race."""

import sys
from collections.abc import Callable

import pytest

from runtime import DPPolicy, torch
from runtime.device.rank.rank_state import running_rank
from tests.support.checked import CUBE, TWO_CUBES, checked
from tests.support.unordered_streams import PROGRAMS
from tests.support.world import Simulation, simulate


def run(name: str, right: int, topology: str, *, data: bool = True) -> Simulation:
    program: Callable[[int], None] = PROGRAMS[name]

    def main(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        program(right)
        torch.ahbm.synchronize()

    sips = 2 if name.endswith("of_two") else 1
    return simulate(main, sips, topology=topology, record=True, data=data)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("topology", [CUBE, TWO_CUBES], ids=["a cube", "two cubes"])
def test_a_missing_order_is_reported_strictly_and_the_right_twin_is_not(
    name: str, topology: str
) -> None:
    wrong, right = (run(name, each, topology, data=topology is CUBE) for each in (0, 1))
    reports = checked(wrong, is_strict=True).races
    assert reports
    assert all(each.is_strict for each in reports)
    # The order by tensor makes the numbers right, so it is no race here.
    assert checked(wrong).reports == 0
    assert checked(right, is_strict=True).reports == 0


def test_a_report_names_what_would_order_the_streams() -> None:
    [event, *_] = checked(run("written_and_read_beside", 0, CUBE), is_strict=True).races
    assert "wait_stream" in event.remedy
    [work, *_] = checked(run("all_reduce_without_wait_of_two", 0, CUBE), is_strict=True).races
    assert "Work.wait()" in work.remedy


def test_a_chain_of_commands_may_be_longer_than_the_stack_of_python() -> None:
    def main(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        torch.distributed.all_reduce(torch.zeros(8, dp=DPPolicy(num_cubes=1, num_pes=1)))
        for _ in range(sys.getrecursionlimit()):
            running_rank().device.submit([], "an event")
        torch.ahbm.synchronize()

    assert checked(simulate(main, 2, topology=CUBE, record=True)).reports == 0
