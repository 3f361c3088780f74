"""Groups that an all-reduce over both dimensions of a grid supports, and those that it refuses."""

import pytest

from runtime.ccl.algorithms import torus
from runtime.ccl.config import load_ccl
from runtime.ccl.group import Group
from runtime.model.topology import Topology
from tests.support.mock_group import system

RING = "the SIPs of this machine are a ring (system.sips.topology ring_1d)"


@pytest.mark.parametrize(
    ("topology", "sips", "problem"),
    [
        (system(4), (0, 1, 2, 3), RING),
        (system(3, grid=(3, 1)), (0, 1, 2), "the 3 ranks of this group are 3 x 1"),
        (system(4, grid=(2, 2)), (0, 2), "the 2 ranks of this group are 2 x 1"),
    ],
)
def test_ranks_in_one_dimension_are_refused_with_the_reason(
    topology: Topology, sips: tuple[int, ...], problem: str
) -> None:
    group = Group(0, sips, load_ccl().resolve("torus"), topology)
    with pytest.raises(ValueError, match="torus") as raised:
        torus.arguments(group, 4)
    assert str(raised.value) == (
        f"algorithm 'torus' needs ranks in at least two rows and two columns: {problem}; "
        "the algorithm 'ring' has no such limit"
    )


def test_a_single_rank_has_no_rings() -> None:
    assert torus.arguments(Group(0, (0,), load_ccl().resolve("torus"), system(1)), 4) == ((),)


def test_some_ranks_of_a_grid_form_the_most_square_grid_of_their_own() -> None:
    topology = system(9, grid=(3, 3))
    group = Group(0, (0, 1, 3, 4, 6, 7), load_ccl().resolve("torus"), topology)
    [rings] = torus.arguments(group, 4)
    assert [ring.size for ring in rings] == [3, 2]
