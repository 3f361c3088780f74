"""A launch is refused if two of its PEs store to an element without an order, as a search over all
orders of their calls finds, and no other launch is.
"""

from random import Random

import pytest

from runtime import DPPolicy, torch
from runtime.core.errors import KernelError
from tests.support.joined import ccl_text
from tests.support.random_races import (
    CELL,
    CELLS,
    PES,
    SLOTS,
    Calls,
    kernel_of,
    races_in_all_orders,
    random_turns,
)
from tests.support.topologies import variant_text
from tests.support.world import simulate

MACHINE = variant_text(
    sip__cube_mesh={"w": 1, "h": 1},
    cube__pe_layout__pe_per_corner=1,
    cube__pe_layout__corners=["NW", "NE", "SW"],
)
PLACEMENT = DPPolicy(pe="row_wise", num_cubes=1, num_pes=PES)
RING = ccl_text("pe_ring", n_slots=SLOTS)


def is_refused(calls: Calls) -> bool:
    """Whether a launch of the calls ends with the error about stores to one element."""

    def program(_rank: int) -> None:
        torch.distributed.init_process_group("ahbm")
        torch.launch("random", kernel_of(calls), torch.zeros(CELLS * CELL, dp=PLACEMENT))
        torch.ahbm.synchronize()

    try:
        simulate(program, 1, topology=MACHINE, ccl=RING, data=False)
    except KernelError as error:
        assert "in the same launch" in str(error)  # noqa: PT017 - the error need not occur
        return True
    return False


def compare(seeds: range) -> int:
    """Compare the kernels of seeds; the number of those that are refused."""
    refused = 0
    for seed in seeds:
        calls = random_turns(Random(seed))
        pairs = [
            pair
            for pair in races_in_all_orders(calls)
            if all("store" in calls[pe][number].kind for pe, number in pair)
        ]
        refused += bool(pairs)
        assert is_refused(calls) == bool(pairs), f"seed {seed}: {pairs} in {calls}"
    return refused


def test_refused_are_the_launches_with_two_stores_that_no_order_has_apart() -> None:
    # Both verdicts are tested.
    assert 5 < compare(range(60)) < 55


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(5))
def test_refused_are_those_of_five_hundred_launches_too(part: int) -> None:
    assert 5 < compare(range(1000 + part * 100, 1100 + part * 100)) < 95
