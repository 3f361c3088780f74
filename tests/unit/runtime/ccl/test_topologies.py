import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.ccl.topologies import (
    RECEIVE_ONLY,
    TOPOLOGIES,
    Neighbours,
    hypercube,
    mesh_2d_no_wrap,
    ring_1d,
    torus_2d,
    tree_binary,
)
from runtime.model.directions import OPPOSITE

sizes = st.tuples(st.integers(1, 6), st.integers(1, 6))
counts = st.integers(1, 40)


def everywhere(name: str, w: int, h: int) -> list[Neighbours]:
    return [TOPOLOGIES[name](index, w, h) for index in range(w * h)]


@pytest.mark.parametrize("name", TOPOLOGIES)
@given(size=sizes)
def test_every_direction_pairs_with_its_opposite_or_with_the_only_one_that_leads_back(
    name: str, size: tuple[int, int]
) -> None:
    neighbours = everywhere(name, *size)
    for index, mine in enumerate(neighbours):
        for direction, peer in mine.items():
            if direction in OPPOSITE:
                assert neighbours[peer][OPPOSITE[direction]] == index
            else:
                assert list(neighbours[peer].values()).count(index) == 1


@pytest.mark.parametrize("name", TOPOLOGIES)
@given(size=sizes)
def test_no_position_is_its_own_neighbour_and_a_single_one_has_none(
    name: str, size: tuple[int, int]
) -> None:
    for index, mine in enumerate(everywhere(name, *size)):
        assert index not in mine.values()
    assert TOPOLOGIES[name](0, 1, 1) == {}


@given(sizes)
def test_following_a_direction_of_a_torus_returns_after_a_row_or_column(
    size: tuple[int, int],
) -> None:
    w, h = size
    for direction, length in (("E", w), ("W", w), ("N", h), ("S", h)):
        if length == 1:
            continue
        index, seen = 0, []
        while index not in seen:
            seen.append(index)
            index = torus_2d(index, w, h)[direction]
        assert len(seen) == length


def test_a_mesh_of_three_by_two_has_no_neighbours_beyond_its_edge() -> None:
    assert mesh_2d_no_wrap(0, 3, 2) == {"E": 1, "S": 3}
    assert mesh_2d_no_wrap(4, 3, 2) == {"E": 5, "W": 3, "N": 1}


def test_north_is_the_row_above_and_rows_are_closed_to_rings() -> None:
    assert torus_2d(0, 3, 3) == {"E": 1, "W": 2, "N": 6, "S": 3}


def test_two_in_a_ring_are_neighbours_on_both_sides() -> None:
    assert ring_1d(0, 2, 1) == {"E": 1, "W": 1}


@given(counts)
def test_a_tree_connects_every_position_with_the_root_by_one_link_less_than_positions(
    count: int,
) -> None:
    neighbours = everywhere("tree_binary", count, 1)
    assert sum(map(len, neighbours)) == 2 * (count - 1)
    for index in range(count):
        at, links = index, 0
        while at:
            at, links = neighbours[at]["parent"], links + 1
        assert links == (index + 1).bit_length() - 1


def test_a_tree_of_six_has_one_parent_with_one_child() -> None:
    assert [tree_binary(index, 3, 2) for index in (0, 1, 2)] == [
        {"child_0": 1, "child_1": 2},
        {"parent": 0, "child_0": 3, "child_1": 4},
        {"parent": 0, "child_0": 5},
    ]


@given(counts)
def test_a_hypercube_has_every_bit_of_a_power_of_two_and_folds_the_rest(count: int) -> None:
    neighbours = everywhere("hypercube", count, 1)
    inside = max(power for power in (1, 2, 4, 8, 16, 32) if power <= count)
    for index, mine in enumerate(neighbours[:inside]):
        bits = {name: peer for name, peer in mine.items() if name != "fold"}
        assert bits == {f"bit_{bit}": index ^ 2**bit for bit in range(inside.bit_length() - 1)}
    assert [mine["fold"] for mine in neighbours[inside:]] == list(range(count - inside))
    assert sum("fold" in mine for mine in neighbours) == 2 * (count - inside)


def test_a_hypercube_of_five_folds_the_last_onto_the_first() -> None:
    assert [hypercube(index, 5, 1) for index in (0, 3, 4)] == [
        {"bit_0": 1, "bit_1": 2, "fold": 4},
        {"bit_0": 2, "bit_1": 1},
        {"fold": 0},
    ]


def test_fully_connected_has_every_other_rank_and_none_has_no_neighbour() -> None:
    assert everywhere("fully_connected", 3, 1)[1] == {"rank_0": 0, "rank_2": 2}
    assert everywhere("none", 2, 2) == [{}] * 4


@pytest.mark.parametrize("name", ["ring_1d_unidir", "hierarchical_3level"])
def test_other_names_of_a_ring_have_the_neighbours_of_a_ring_between_sips(name: str) -> None:
    assert everywhere(name, 5, 1) == everywhere("ring_1d", 5, 1)


def test_a_receive_only_direction_belongs_to_its_topology_and_its_opposite_only_sends() -> None:
    for name, directions in RECEIVE_ONLY.items():
        assert directions < set(TOPOLOGIES[name](0, 4, 1))
        assert not {OPPOSITE[each] for each in directions} & directions


def test_opposites_pair_up() -> None:
    assert all(OPPOSITE[OPPOSITE[each]] == each != OPPOSITE[each] for each in OPPOSITE)
