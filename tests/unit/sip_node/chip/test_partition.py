"""The channels that routes between SIPs take, for SIPs dealt to LPs in several ways."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from runtime.core.simtime import ps_from_ns
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import parse_topology
from sip_node.chip.chip import chip_spec
from sip_node.chip.partition import Egress, Partition
from sip_node.pdes.promises import ForwardingPath
from tests.support.counted_fabric import CountedFabric
from tests.support.topologies import small, variant_text

ALONE = tuple((sip,) for sip in range(8))


def partition(sips_of_lp: Sequence[Sequence[int]], **changes: object) -> tuple[Partition, int]:
    """The partition, and the time from one SIP to the next."""
    topology = parse_topology(
        variant_text(**changes), "topology.yaml", sum(len(sips) for sips in sips_of_lp)
    )
    made = Partition(sips_of_lp, chip_spec(topology, data=False))
    crossing_ps = SipFabric(topology).link(0, 1).latency_ps
    return made, crossing_ps + ps_from_ns(topology.sip.io_chiplet.noc.overhead_ns)


def test_a_message_to_a_neighbour_leaves_at_once_and_has_no_remaining_hops() -> None:
    ring, _ = partition(ALONE)
    assert ring.egresses(0)[1] == Egress(1, 0, 0, last_sip=0)
    assert ring.egresses(0)[7] == Egress(7, 0, 0, last_sip=0)


def test_a_route_around_a_ring_crosses_a_channel_at_every_hop() -> None:
    ring, _ = partition(ALONE)
    assert ring.egresses(0)[3] == Egress(1, 0, 2, last_sip=0)
    assert ring.egresses(0)[4] == Egress(1, 0, 3, last_sip=0), "ties go in the + direction"


@pytest.mark.parametrize(
    ("changes", "peers"),
    [
        ({}, {0: (1, 2, 3, 4, 7), 2: (0, 1, 3), 4: (0, 3, 5, 6, 7), 6: (4, 5, 7)}),
        (
            {"system__sips__topology": "torus_2d", "system__sips__w": 4, "system__sips__h": 2},
            {0: (1, 2, 3, 4), 5: (1, 4, 6), 7: (3, 4, 6)},
        ),
        (
            {
                "system__sips__topology": "mesh_2d_no_wrap",
                "system__sips__w": 4,
                "system__sips__h": 2,
            },
            {0: (1, 2, 3, 4), 5: (1, 4, 6), 7: (3, 4, 6)},
        ),
        ({"system__sips__fabric": "switch"}, {0: tuple(range(1, 8)), 5: (0, 1, 2, 3, 4, 6, 7)}),
    ],
    ids=["ring", "torus", "mesh", "switch"],
)
def test_an_lp_has_its_neighbours_and_those_in_the_tree_of_reports_as_peers(
    changes: dict[str, object], peers: dict[int, tuple[int, ...]]
) -> None:
    """LPs 0 to 3 are on one host, LPs 4 to 7 on another."""
    made, _ = partition(ALONE, **changes)
    assert {lp: made.peers(lp, (0, 0, 0, 0, 1, 1, 1, 1)) for lp in peers} == peers


def test_on_one_host_every_lp_is_a_peer_of_lp_0() -> None:
    ring, _ = partition(ALONE)
    assert ring.peers(0, (0,) * 8) == (1, 2, 3, 4, 5, 6, 7)
    assert ring.peers(4, (0,) * 8) == (0, 3, 5)


def test_two_lps_are_peers_of_each_other() -> None:
    ring, _ = partition(((0, 4), (1,), (2, 3), (5,), (6, 7)))
    lps, hosts = range(5), (0, 0, 1, 1, 2)
    assert {(a, b) for a in lps for b in ring.peers(a, hosts)} == {
        (b, a) for a in lps for b in ring.peers(a, hosts)
    }


def test_a_run_with_one_lp_has_no_peers() -> None:
    assert partition((range(8),))[0].peers(0, (0,)) == ()


def test_links_inside_an_lp_only_take_time() -> None:
    ring, hop_ps = partition(((0, 1, 2, 3), (4, 5, 6, 7)))
    assert ring.egresses(1)[5] == Egress(1, 2 * hop_ps, 0, last_sip=3)
    assert 3 not in ring.egresses(1)


def test_a_route_may_leave_an_lp_and_come_back() -> None:
    ring, _ = partition(((0, 2), (1, 3)))
    assert ring.egresses(0)[2] == Egress(1, 0, 1, last_sip=0)


def test_two_halves_of_a_ring_forward_nothing() -> None:
    ring, _ = partition(((0, 1, 2, 3), (4, 5, 6, 7)))
    assert ring.forwarding_paths(0) == {1: ((),)}


def test_behind_a_switch_nothing_is_forwarded() -> None:
    star, _ = partition(ALONE[:4], system__sips__fabric="switch")
    assert star.forwarding_paths(0) == {1: ((),), 2: ((),), 3: ((),)}


def test_in_a_ring_of_four_only_messages_across_it_are_forwarded() -> None:
    ring, _ = partition(ALONE[:4])
    # Ties go in the + direction: nothing takes two hops the other way, and what SIP 1 gets from 0
    # for 2 has arrived there.
    assert ring.forwarding_paths(1) == {2: ((ForwardingPath(0, 0),), ()), 0: ((),)}


@pytest.mark.parametrize("lp", range(8))
def test_in_a_ring_of_eight_messages_with_more_remaining_hops_have_come_from_fewer_lps(
    lp: int,
) -> None:
    ring, _ = partition(ALONE)
    before, after = (lp - 1) % 8, (lp + 1) % 8
    forwards, backwards = (ForwardingPath(before, 0),), (ForwardingPath(after, 0),)
    # At most 4 hops forwards and 3 backwards; the first hop of the longest route starts here.
    assert ring.forwarding_paths(lp) == {
        after: (forwards,) * 3 + ((),),
        before: (backwards,) * 2 + ((),),
    }


def test_a_forwarding_path_through_several_sips_takes_the_time_of_their_links() -> None:
    ring, hop_ps = partition(((0, 1), (2, 3), (4, 5), (6, 7)))
    assert ring.forwarding_paths(1)[2] == ((ForwardingPath(0, hop_ps),), ())
    assert ring.egresses(1)[4] == Egress(1, 0, 1, last_sip=1)


@pytest.mark.parametrize("topology", ["ring_1d", "torus_2d", "mesh_2d_no_wrap"])
@pytest.mark.parametrize("lps", [2, 4, 16])
def test_the_routes_of_an_lp_are_computed_in_steps_that_grow_with_the_pairs_of_sips(
    topology: str, lps: int
) -> None:
    for sips in (16, 64):
        machine = small(system__sips__count=sips, system__sips__topology=topology)
        fabric, each = CountedFabric(machine), sips // lps
        spec = replace(chip_spec(machine, data=False), sips=fabric)
        made = Partition([range(lp * each, (lp + 1) * each) for lp in range(lps)], spec)
        made.forwarding_paths(0)
        # A step for each SIP of a route and target; the links into the LP look at every target.
        assert 0 < fabric.reads <= sips * (sips + 2 * each + 2)
