from itertools import pairwise

import pytest

from runtime.ccl.algorithms import intercube
from runtime.ccl.config import AlgorithmConfig, CclConfig, load_ccl, parse_ccl
from runtime.ccl.directions import OPPOSITE
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan, connected_sips
from runtime.errors import ConfigError
from runtime.hardware.addresses import AddressMap, PhysAddr
from runtime.hardware.allocation import kernel_scratch_offset
from runtime.hardware.topology import Topology
from runtime.places import Place
from runtime.requests import QueuePair
from tests.support.joined import ccl_text
from tests.support.topologies import small

CCL = load_ccl()
TORUS = {"system__sips__topology": "torus_2d", "system__sips__w": 3, "system__sips__h": 2}


def config(name: str, **overrides: object) -> AlgorithmConfig:
    return AlgorithmConfig(**(vars(CCL.resolve(name)) | overrides))


def plan_of(topology: Topology, algorithm: AlgorithmConfig) -> InstallPlan:
    return InstallPlan(Group(0, topology.sips, algorithm, topology), "ccl.yaml")


def queues(topology: Topology, algorithm: AlgorithmConfig) -> dict[tuple[Place, str], QueuePair]:
    """Every queue pair of every SIP by place and direction."""
    plan = plan_of(topology, algorithm)
    return {
        (Place(sip, *at), pair.direction): pair
        for sip in range(topology.sips)
        for at, pairs in plan.of_sip(sip).items()
        for pair in pairs
    }


WORLDS = {
    "two in a ring": ("ring", small(system__sips__count=2)),
    "three in a ring": ("ring", small(system__sips__count=3)),
    "cubes and a ring": ("intercube", small(system__sips__count=2)),
    "cubes and a torus": ("intercube", small(system__sips__count=6, **TORUS)),
}


@pytest.mark.parametrize("kind", ["tcm", "hbm", "sram"])
@pytest.mark.parametrize("world", WORLDS)
def test_where_one_sends_is_where_the_other_receives(world: str, kind: str) -> None:
    name, topology = WORLDS[world]
    found = queues(topology, config(name, buffer_kind=kind))
    for (place, direction), pair in found.items():
        facing = found[pair.peer, OPPOSITE[direction]]
        assert (facing.peer, facing.rx_base, facing.tx_base) == (place, pair.tx_base, pair.rx_base)


@pytest.mark.parametrize("kind", ["tcm", "hbm", "sram"])
@pytest.mark.parametrize("world", WORLDS)
def test_no_two_receive_rings_overlap_and_all_lie_in_their_memory(world: str, kind: str) -> None:
    name, topology = WORLDS[world]
    addresses, rings = AddressMap(topology), []
    for (place, _), pair in queues(topology, config(name, buffer_kind=kind)).items():
        first, last = (PhysAddr.decode(at, addresses) for at in (pair.rx_base, pair.rx_base + pair.ring_bytes - 1))
        assert (first.resource, first.sip, first.cube) == (last.resource, last.sip, last.cube) == (kind, place.sip, place.cube)
        assert first.pe == last.pe
        assert kind != "tcm" or last.offset < kernel_scratch_offset(topology)
        rings.append((pair.rx_base, pair.rx_base + pair.ring_bytes))
    assert all(end <= start for (_, end), (start, _) in pairwise(sorted(rings)))


def test_two_ranks_of_a_ring_are_joined_twice() -> None:
    found = queues(small(system__sips__count=2), config("ring"))
    east, west = found[Place(0, 1, 2), "global_E"], found[Place(0, 1, 2), "global_W"]
    assert east.peer == west.peer == Place(1, 1, 2)
    assert len({east.rx_base, east.tx_base, west.rx_base, west.tx_base}) == 4


def test_intercube_joins_the_leaders_of_a_cube_mesh_and_the_root_cubes_of_the_sips() -> None:
    topology = small(system__sips__count=2)
    found = queues(topology, config("intercube", root_cube=1))
    ways = {place.cube: sorted(way for at, way in found if at == place) for place, _ in found if place.sip == 0}
    assert ways == {0: ["E", "S"], 1: ["S", "W", "global_E", "global_W"], 2: ["E", "N"], 3: ["N", "W"]}


def test_the_root_is_the_last_cube_unless_the_file_says_otherwise() -> None:
    topology = small()
    assert Group(0, 2, config("intercube"), topology).root_cube == 3
    assert Group(0, 2, config("intercube", root_cube=0), topology).root_cube == 0


def test_the_plan_is_the_same_on_every_rank() -> None:
    topology, algorithm = small(system__sips__count=3), config("intercube")
    plans = [InstallPlan(Group(rank, 3, algorithm, topology), "ccl.yaml") for rank in range(3)]
    assert all(plan.of_sip(1) == plans[0].of_sip(1) for plan in plans)


def test_one_rank_alone_has_no_queues_between_sips() -> None:
    assert queues(small(system__sips__count=1), config("ring")) == {}


def test_the_rings_of_a_pe_take_the_room_of_its_most_joined_one() -> None:
    plan = plan_of(small(system__sips__count=2), config("intercube", n_slots=3, slot_size=128))
    assert plan.ring_bytes_a_pe == 4 * 3 * 128


def test_connected_sips_are_those_that_some_algorithm_of_the_files_joins() -> None:
    assert connected_sips(small(system__sips__count=3), CCL) == {(a, b) for a in range(3) for b in range(3) if a != b}
    torus = small(system__sips__count=6, **TORUS)
    # The ring 0 1 2 3 4 5, and the rows and columns of the torus 0 1 2 / 3 4 5.
    ring = {(a, (a + 1) % 6) for a in range(6)}
    grid = {(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3), (1, 4), (2, 5)}
    assert connected_sips(torus, CCL) == {pair for a, b in ring | grid for pair in ((a, b), (b, a))}


def ccl_with(mapper: str) -> CclConfig:
    return parse_ccl(ccl_text(mapper), "ccl.yaml")


def test_a_mapper_of_ones_own_is_found_by_its_dotted_path() -> None:
    topology = small(system__sips__count=1)
    algorithm = ccl_with("tests.support.joined.pair_0_1_3_2").resolve()
    found = queues(topology, algorithm)
    assert {key: pair.peer for key, pair in found.items()} == {
        (Place(0, 0, 1), "E"): Place(0, 3, 2),
        (Place(0, 3, 2), "W"): Place(0, 0, 1),
    }


@pytest.mark.parametrize(
    ("mapper", "complaint"),
    [
        ("all_pe", "algorithms.joined.mapper: 'all_pe' is not known; did you mean 'all_pes'?"),
        ("tests.support.joined.nobody", "algorithms.joined.mapper: 'tests.support.joined.nobody' cannot be imported"),
        ("no.such.module.mapper", "No module named 'no'"),
    ],
)
def test_a_mapper_that_does_not_exist_is_an_error_of_the_file(mapper: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        plan_of(small(system__sips__count=1), ccl_with(mapper).resolve())
    assert str(raised.value).startswith("ccl.yaml: ")
    assert complaint in str(raised.value)


def test_the_arguments_of_intercube_place_a_rank_in_the_grid_of_sips() -> None:
    topology = small(system__sips__count=6, **TORUS)
    group = Group(4, 6, config("intercube"), topology)
    assert intercube.arguments(group, 4) == ((2, 2), 3, (1, 3, True), (1, 2, True), 4096)


def test_a_plan_knows_in_which_direction_a_sip_sends_to_another() -> None:
    plan = plan_of(small(system__sips__count=4), config("ring"))
    ways = {peer: plan.way_between(3, peer) for peer in range(4)}
    assert ways == {0: "global_E", 1: None, 2: "global_W", 3: None}


def test_where_two_directions_lead_to_a_sip_both_ends_choose_one_queue() -> None:
    plan = plan_of(small(system__sips__count=2), config("ring"))
    assert [plan.way_between(0, 1), plan.way_between(1, 0)] == ["global_E", "global_E"]
