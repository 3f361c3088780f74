import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.ccl.directions import OPPOSITE
from runtime.ccl.topologies import TOPOLOGIES, Neighbours, mesh_2d_no_wrap, ring_1d, torus_2d

sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))


def everywhere(name: str, w: int, h: int) -> list[Neighbours]:
    return [TOPOLOGIES[name](index, w, h) for index in range(w * h)]


@pytest.mark.parametrize("name", TOPOLOGIES)
@given(size=sizes)
def test_what_leaves_by_one_side_arrives_at_the_peers_opposite_side(name: str, size: tuple[int, int]) -> None:
    neighbours = everywhere(name, *size)
    for index, mine in enumerate(neighbours):
        for way, peer in mine.items():
            assert neighbours[peer][OPPOSITE[way]] == index


@pytest.mark.parametrize("name", TOPOLOGIES)
@given(size=sizes)
def test_nobody_is_their_own_neighbour_and_a_lone_one_has_none(name: str, size: tuple[int, int]) -> None:
    for index, mine in enumerate(everywhere(name, *size)):
        assert index not in mine.values()
    assert TOPOLOGIES[name](0, 1, 1) == {}


@given(sizes)
def test_following_one_side_of_a_torus_comes_back_after_a_row_or_column(size: tuple[int, int]) -> None:
    w, h = size
    for way, length in (("E", w), ("W", w), ("N", h), ("S", h)):
        if length == 1:
            continue
        index, seen = 0, []
        while index not in seen:
            seen.append(index)
            index = torus_2d(index, w, h)[way]
        assert len(seen) == length


def test_a_mesh_of_three_by_two_has_no_neighbours_beyond_its_edge() -> None:
    assert mesh_2d_no_wrap(0, 3, 2) == {"E": 1, "S": 3}
    assert mesh_2d_no_wrap(4, 3, 2) == {"E": 5, "W": 3, "N": 1}


def test_north_is_the_row_above_and_rows_close_to_rings() -> None:
    assert torus_2d(0, 3, 3) == {"E": 1, "W": 2, "N": 6, "S": 3}


def test_two_in_a_ring_are_neighbours_on_both_sides() -> None:
    assert ring_1d(0, 2, 1) == {"E": 1, "W": 1}


def test_opposites_pair_up() -> None:
    assert all(OPPOSITE[OPPOSITE[way]] == way != OPPOSITE[way] for way in OPPOSITE)
