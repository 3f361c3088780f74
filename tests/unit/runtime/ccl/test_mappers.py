from runtime.ccl.mappers import MAPPERS, all_pes, cube_leaders, leader_only, pe_trees
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


def test_cube_leaders_form_the_cube_mesh_and_exchange_at_the_root() -> None:
    mapping = cube_leaders(FOUR_CUBES, 2)
    assert mapping.participants == ((0, 0), (1, 0), (2, 0), (3, 0))
    assert mapping.local[0, 0] == {"E": (1, 0), "S": (2, 0)}
    assert mapping.local[3, 0] == {"W": (2, 0), "N": (1, 0)}
    assert mapping.exchange == {(2, 0)}


def test_pe_trees_connect_the_pes_of_a_cube_below_pe_0_and_the_leaders_as_the_cube_mesh() -> None:
    mapping, leaders = pe_trees(FOUR_CUBES, 2), cube_leaders(FOUR_CUBES, 2)
    assert mapping.participants == all_pes(FOUR_CUBES, 2).participants
    assert mapping.exchange == {(2, 0)}
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
