"""Orders written out by hand."""

import pytest

from kernbench.oracle.theory.collectives.rank_orders import closed_tour, sips_by_number
from kernbench.oracle.theory.paths.sip_grid import SipGrid


def test_a_tour_of_an_open_grid_goes_back_and_forth_and_up_the_first_column() -> None:
    # 0 1 2 / 3 4 5 / 6 7 8 / 9 10 11, and its transpose.
    tall = closed_tour(SipGrid(3, 4, wraps=False))
    assert tall == [0, 1, 2, 5, 4, 7, 8, 11, 10, 9, 6, 3]
    wide = closed_tour(SipGrid(4, 3, wraps=False))
    assert wide == [0, 4, 8, 9, 5, 6, 10, 11, 7, 3, 2, 1]


@pytest.mark.parametrize(
    ("algorithm", "sips", "order"),
    [
        ("ring", 6, [0, 1, 2, 3, 4, 5]),
        ("recursive_doubling", 4, [0, 1, 3, 2]),
        ("halving_doubling", 8, [0, 1, 3, 2, 7, 6, 4, 5]),
        # Numbers below the first child, the number, numbers below the second: 3 1 4 0 2.
        ("tree", 5, [3, 1, 4, 0, 2]),
        ("mesh", 4, [0, 1, 3, 2]),
        ("recursive_doubling", 2, [0, 1]),
    ],
)
def test_neighbours_of_an_algorithm_are_near_on_a_ring(
    algorithm: str, sips: int, order: list[int]
) -> None:
    assert sips_by_number(algorithm, SipGrid(sips)) == order


def test_a_ring_on_an_open_grid_follows_the_tour() -> None:
    grid = SipGrid(3, 2, wraps=False)
    assert sips_by_number("ring", grid) == [0, 1, 2, 5, 4, 3]
    assert sips_by_number("mesh", grid) == list(range(6))
