from itertools import pairwise

import pytest

from runtime.ccl.algorithms import intercube
from runtime.ccl.config import AlgorithmConfig, CclConfig, load_ccl, parse_ccl
from runtime.ccl.group import Group
from runtime.ccl.plan import InstallPlan, plan_of_one_sip
from runtime.core.config.config_file import default_file
from runtime.core.coordinates import PeCoordinates
from runtime.core.errors import ConfigError
from runtime.core.requests import QueuePair
from runtime.model.addresses import AddressMap, PhysAddr
from runtime.model.allocation import transfer_scratch_offset
from runtime.model.topology import Topology
from tests.support.joined import ccl_text
from tests.support.topologies import small

CCL = load_ccl()
TORUS = {"system__sips__topology": "torus_2d", "system__sips__w": 3, "system__sips__h": 2}


def config(name: str, **overrides: object) -> AlgorithmConfig:
    return AlgorithmConfig(**(vars(CCL.resolve(name)) | overrides))


def plan_of(topology: Topology, algorithm: AlgorithmConfig) -> InstallPlan:
    return InstallPlan(Group(0, tuple(range(topology.sips)), algorithm, topology), "ccl.yaml")


def queues(
    topology: Topology, algorithm: AlgorithmConfig
) -> dict[tuple[PeCoordinates, str], QueuePair]:
    """Every queue pair of every SIP by coordinates and direction."""
    plan = plan_of(topology, algorithm)
    return {
        (PeCoordinates(sip, *at), pair.direction): pair
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
def test_the_ring_to_which_a_pe_sends_is_the_receive_ring_of_its_peer(
    world: str, kind: str
) -> None:
    name, topology = WORLDS[world]
    found = queues(topology, config(name, buffer_kind=kind))
    for (pe, direction), pair in found.items():
        facing = found[pair.peer, pair.peer_direction]
        assert (facing.peer, facing.peer_direction) == (pe, direction)
        assert (facing.rx_base, facing.tx_base) == (pair.tx_base, pair.rx_base)


@pytest.mark.parametrize("kind", ["tcm", "hbm", "sram"])
@pytest.mark.parametrize("world", WORLDS)
def test_no_two_receive_rings_overlap_and_all_lie_in_their_memory(world: str, kind: str) -> None:
    name, topology = WORLDS[world]
    addresses, rings = AddressMap(topology), []
    for (pe, _), pair in queues(topology, config(name, buffer_kind=kind)).items():
        assert pair.rx_base is not None
        first, last = (
            PhysAddr.decode(at, addresses)
            for at in (pair.rx_base, pair.rx_base + pair.ring_bytes - 1)
        )
        assert (
            (first.resource, first.sip, first.cube)
            == (last.resource, last.sip, last.cube)
            == (kind, pe.sip, pe.cube)
        )
        assert first.pe == last.pe
        assert kind != "tcm" or last.offset < transfer_scratch_offset(topology)
        rings.append((pair.rx_base, pair.rx_base + pair.ring_bytes))
    assert all(end <= start for (_, end), (start, _) in pairwise(sorted(rings)))


def test_two_ranks_of_a_ring_are_connected_twice() -> None:
    found = queues(small(system__sips__count=2), config("ring"))
    east, west = (
        found[PeCoordinates(0, 1, 2), "global_E"],
        found[PeCoordinates(0, 1, 2), "global_W"],
    )
    assert east.peer == west.peer == PeCoordinates(1, 1, 2)
    assert len({east.rx_base, east.tx_base, west.rx_base, west.tx_base}) == 4


def test_intercube_connects_the_leaders_of_a_cube_mesh_and_those_of_equal_cubes_of_the_sips():
    topology = small(system__sips__count=2)
    found = queues(topology, config("intercube", root_cube=1))
    directions = {
        pe.cube: sorted(direction for other, direction in found if other == pe)
        for pe, _ in found
        if pe.sip == 0
    }
    assert directions == {
        0: ["E", "S", "global_E", "global_W"],
        1: ["S", "W", "global_E", "global_W"],
        2: ["E", "N", "global_E", "global_W"],
        3: ["N", "W", "global_E", "global_W"],
    }


def test_the_root_is_the_last_cube_unless_the_file_names_another_one() -> None:
    topology = small()
    assert Group(0, (0, 1), config("intercube"), topology).root_cube == 3
    assert Group(0, (0, 1), config("intercube", root_cube=0), topology).root_cube == 0


def test_the_plan_is_the_same_on_every_rank() -> None:
    topology, algorithm = small(system__sips__count=3), config("intercube")
    plans = [
        InstallPlan(Group(rank, (0, 1, 2), algorithm, topology), "ccl.yaml") for rank in range(3)
    ]
    assert all(plan.of_sip(1) == plans[0].of_sip(1) for plan in plans)


def test_a_single_rank_has_no_queues_between_sips() -> None:
    assert queues(small(system__sips__count=1), config("ring")) == {}


def test_every_pe_reserves_the_rings_of_the_pe_with_the_most_neighbours() -> None:
    plan = plan_of(small(system__sips__count=2), config("intercube", n_slots=3, slot_size=128))
    assert plan.ring_bytes_a_pe == 4 * 3 * 128


def ccl_with(mapper: str) -> CclConfig:
    return parse_ccl(ccl_text(mapper), "ccl.yaml")


def test_a_user_defined_mapper_is_found_by_its_import_path() -> None:
    topology = small(system__sips__count=1)
    algorithm = ccl_with("tests.support.joined.pair_0_1_3_2").resolve()
    found = queues(topology, algorithm)
    assert {key: pair.peer for key, pair in found.items()} == {
        (PeCoordinates(0, 0, 1), "E"): PeCoordinates(0, 3, 2),
        (PeCoordinates(0, 3, 2), "W"): PeCoordinates(0, 0, 1),
    }


def test_the_arguments_of_intercube_place_a_rank_in_the_grid_of_sips() -> None:
    topology = small(system__sips__count=6, **TORUS)
    group = Group(4, tuple(range(6)), config("intercube"), topology)
    system, block = intercube.arguments(group, 4)
    assert (system.mesh, system.root, system.lines) == ((2, 2), 3, ((1, 3, True), (1, 2, True)))
    # Four slots of 4 KiB; larger shards are pipelines.
    assert block == 4 * 4096 // 4


def test_rings_lie_below_those_of_other_tables() -> None:
    topology, algorithm = small(system__sips__count=2), config("ring", buffer_kind="sram")
    group = Group(0, (0, 1), algorithm, topology)
    first = InstallPlan(group, "ccl.yaml")
    second = InstallPlan(group, "ccl.yaml", above_bytes=first.ring_bytes_a_pe)
    rings = [
        (pair.rx_base, pair.ring_bytes)
        for plan in (first, second)
        for at, pairs in plan.of_sip(1).items()
        for pair in pairs
        if at[0] == 0 and pair.rx_base is not None
    ]
    assert len(rings) == 2 * 2 * topology.pes_per_cube
    assert all(base + nbytes <= after for (base, nbytes), (after, _) in pairwise(sorted(rings)))


def test_a_one_way_ring_sends_to_the_next_rank_and_has_half_the_rings() -> None:
    topology = small(system__sips__count=3)
    found = queues(topology, config("ring", topology="ring_1d_unidir"))
    ahead, behind = (
        found[PeCoordinates(1, 0, 0), "global_E"],
        found[PeCoordinates(2, 0, 0), "global_W"],
    )
    assert (ahead.peer.sip, ahead.rx_base, behind.peer.sip, behind.tx_base) == (2, None, 1, None)
    assert ahead.tx_base == behind.rx_base is not None
    assert (
        plan_of(topology, config("ring", topology="ring_1d_unidir")).ring_bytes_a_pe
        == config("ring").ring_bytes
    )


def test_a_group_of_some_ranks_connects_their_sips() -> None:
    topology = small(system__sips__count=4)
    plan = InstallPlan(Group(1, (0, 3), config("ring"), topology), "ccl.yaml")
    assert {pair.peer.sip for pair in plan.of_sip(3)[0, 0]} == {0}


def one_way_only(index: int, w: int, h: int) -> dict[str, int]:
    return {"ahead": (index + 1) % (w * h)}


def test_a_direction_from_which_nothing_leads_back_is_an_error_of_the_file() -> None:
    topology = small(system__sips__count=3)
    with pytest.raises(
        ConfigError,
        match=r"algorithms\.ring\.topology: global_ahead leads from .* has to lead back",
    ):
        plan_of(topology, config("ring", topology=f"{__name__}:one_way_only")).of_sip(0)


def test_a_table_of_queues_is_planned_with_the_key_path_of_its_section_in_errors() -> None:
    with pytest.raises(
        ConfigError, match=r"^ccl\.yaml: queues\.wide: 2 receive rings a PE of 9999 "
    ):
        plan_of_one_sip("wide", small(), with_queues("wide: {mapper: pe_ring, n_slots: 9999}"))


def with_queues(entry: str) -> CclConfig:
    return parse_ccl(f"{default_file('ccl.yaml').read_text()}\n  {entry}\n", "ccl.yaml")


def test_the_plan_of_one_sip_has_the_queues_inside_it() -> None:
    plan = plan_of_one_sip("pe_ring", small(sip__cube_mesh={"w": 1, "h": 1}))
    east = {at: pair.peer for at, pairs in plan.items() for pair in pairs if pair.direction == "E"}
    assert east == {(0, pe): PeCoordinates(0, 0, (pe + 1) % 4) for pe in range(4)}


def test_a_plan_for_an_unknown_table_names_the_nearest_one() -> None:
    with pytest.raises(
        ConfigError, match=r"no queue table 'cube_rign'; did you mean 'cube_ring'\?"
    ):
        plan_of_one_sip("cube_rign")
