"""Times over a hypercube, against sums of single commands."""

import pytest

from kernbench.oracle.theory.kernels.kernel_costs import KernelCosts
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.fidelity.theory.hypercube_times import (
    all_gather_ps,
    broadcast_ps,
    reduce_ps,
)
from tests.support.topologies import default_text

FILE = TopologyFile.of(default_text()).with_values({"sip.cube_mesh": {"w": 1, "h": 1}})
COSTS = KernelCosts(FILE, 4096)
NBYTES = 32
LOAD, STORE = COSTS.load_ps(NBYTES), COSTS.store_ps(NBYTES)
ARRIVAL = COSTS.message_ps(COSTS.to_sip(), NBYTES) + COSTS.copy_ps(NBYTES)


def test_a_broadcast_to_four_ends_at_the_child_of_the_first_child() -> None:
    # Along 0 1 3 2 all partners are neighbours: 0 to 2, then 2 to 3. The message from 0 to 1 leaves
    # behind that to 2 and arrives earlier than that of 2 to 3.
    assert broadcast_ps(COSTS, 4, NBYTES) == LOAD + 2 * ARRIVAL + STORE


def test_a_reduce_adds_one_message_in_each_step() -> None:
    assert reduce_ps(COSTS, 4, NBYTES) == LOAD + 2 * (ARRIVAL + COSTS.add_ps(NBYTES)) + STORE


@pytest.mark.parametrize("sips", [2, 4])
def test_an_all_gather_stores_the_parts_of_all_ranks_at_the_end(sips: int) -> None:
    first = COSTS.issue_ps + ARRIVAL
    # The second step sends two messages, of which the second leaves a command later.
    second = 2 * COSTS.issue_ps + COSTS.send_ps(NBYTES) + ARRIVAL if sips == 4 else 0
    assert all_gather_ps(COSTS, sips, NBYTES) == LOAD + first + second + sips * STORE
