from runtime.ccl.mappers import (
    MAPPERS,
    all_pes,
    cube_leaders,
    cube_ring,
    leader_only,
    pe_ring,
    pe_trees,
)
from tests.support.topologies import small

FOUR_CUBES = small()


def test_with_all_pes_every_pe_exchanges_and_has_no_neighbours_in_its_sip() -> None:
    mapping = all_pes(FOUR_CUBES, 0)
    assert mapping.participants == tuple((cube, pe) for cube in range(4) for pe in range(4))
    assert mapping.exchange == set(mapping.participants)
    assert mapping.local == {}


def test_leader_only_takes_the_first_pe() -> None:
    mapping = leader_only(FOUR_CUBES, 3)
    assert (mapping.participants, mapping.exchange) == (((0, 0),), {(0, 0)})


def test_cube_leaders_form_the_cube_mesh_and_every_one_exchanges_with_other_sips() -> None:
    mapping = cube_leaders(FOUR_CUBES, 2)
    assert mapping.participants == ((0, 0), (1, 0), (2, 0), (3, 0))
    assert mapping.local[0, 0] == {"E": (1, 0), "S": (2, 0)}
    assert mapping.local[3, 0] == {"W": (2, 0), "N": (1, 0)}
    assert mapping.exchange == set(mapping.participants)


def test_pe_trees_connect_the_pes_of_a_cube_below_pe_0_and_the_leaders_as_the_cube_mesh() -> None:
    mapping, leaders = pe_trees(FOUR_CUBES, 2), cube_leaders(FOUR_CUBES, 2)
    assert mapping.participants == all_pes(FOUR_CUBES, 2).participants
    assert mapping.exchange == leaders.exchange
    for cube in range(4):
        below = {"pe_child_0": (cube, 1), "pe_child_1": (cube, 2)}
        assert mapping.local[cube, 0] == below | leaders.local[cube, 0]
        assert mapping.local[cube, 1] == {"pe_parent": (cube, 0), "pe_child_0": (cube, 3)}
        assert mapping.local[cube, 2] == {"pe_parent": (cube, 0)}


def test_a_single_pe_has_no_tree() -> None:
    single = small(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout__corners=["NW"])
    assert pe_trees(single, 0).local == {(0, 0): {}}


def test_every_pe_with_neighbours_takes_part() -> None:
    for mapper in MAPPERS.values():
        mapping = mapper(FOUR_CUBES, 1)
        peers = {peer for by_direction in mapping.local.values() for peer in by_direction.values()}
        assert peers | set(mapping.local) | mapping.exchange <= set(mapping.participants)


def test_the_pes_of_every_cube_form_a_ring_in_the_order_of_their_numbers() -> None:
    mapping = pe_ring(FOUR_CUBES, 0)
    assert mapping.participants == all_pes(FOUR_CUBES, 0).participants
    assert mapping.exchange == frozenset()
    for cube in range(4):
        for pe in range(4):
            neighbours = {"E": (cube, (pe + 1) % 4), "W": (cube, (pe - 1) % 4)}
            assert mapping.local[cube, pe] == neighbours


def test_the_ring_of_cubes_is_a_snake_on_two_by_two() -> None:
    mapping = cube_ring(FOUR_CUBES, 0)
    assert mapping.participants == ((0, 0), (1, 0), (2, 0), (3, 0))
    assert mapping.exchange == frozenset()
    east = {cube: mapping.local[cube, 0]["E"][0] for cube in range(4)}
    assert east == {0: 1, 1: 3, 3: 2, 2: 0}
    assert all(mapping.local[east[cube], 0]["W"] == (cube, 0) for cube in range(4))
