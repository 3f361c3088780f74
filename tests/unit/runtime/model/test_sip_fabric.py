"""Routes between SIPs: neighbours, next hops, latency of a crossing."""

from itertools import pairwise, product
from typing import Any

import pytest

from runtime.model.sip_fabric import SipFabric
from tests.support.topologies import variant


def fabric(
    topology: str, count: int, w: int | None = None, h: int | None = None, **changes: Any
) -> SipFabric:
    sips = {
        "topology": topology,
        "count": count,
        "w": w,
        "h": h,
        "fabric": "direct",
        "spacing_mm": 20.0,
    }
    return SipFabric(variant(system__sips=sips | changes))


FABRICS = [
    ("ring_1d", 1, None, None),
    ("ring_1d", 2, None, None),
    ("ring_1d", 5, None, None),
    ("ring_1d", 16, None, None),
    ("torus_2d", 4, None, None),
    ("torus_2d", 12, 4, 3),
    ("mesh_2d", 10, 5, 2),
    ("mesh_2d", 3, 3, 1),
    ("mesh_2d_no_wrap", 12, 4, 3),
    ("mesh_2d_no_wrap", 4, 1, 4),
]


@pytest.mark.parametrize(("topology", "count", "w", "h"), FABRICS)
def test_paths_are_shortest_and_follow_links(
    topology: str, count: int, w: int | None, h: int | None
) -> None:
    sips = fabric(topology, count, w, h)
    longest = 0
    for source in range(count):
        hops, frontier = {source: 0}, [source]
        while frontier:
            at = frontier.pop(0)
            for neighbour in sips.neighbours(at):
                if neighbour not in hops:
                    hops[neighbour] = hops[at] + 1
                    frontier.append(neighbour)
        for target in range(count):
            path = sips.path(source, target)
            assert (path[0], path[-1], len(path) - 1) == (source, target, hops[target])
            assert all(b in sips.neighbours(a) for a, b in pairwise(path))
        longest = max(longest, *hops.values())
    assert sips.diameter == longest


def test_a_ring_of_two_has_one_neighbour_each() -> None:
    assert fabric("ring_1d", 2).neighbours(0) == (1,)
    assert fabric("ring_1d", 1).neighbours(0) == ()


def test_ties_on_a_ring_go_in_the_positive_direction() -> None:
    ring = fabric("ring_1d", 4)
    assert ring.path(0, 2) == (0, 1, 2)
    assert ring.path(3, 1) == (3, 0, 1)
    assert ring.path(0, 3) == (0, 3)


def test_a_torus_goes_along_columns_first_and_wraps() -> None:
    torus = fabric("torus_2d", 16)
    assert torus.path(0, 10) == (0, 1, 2, 6, 10)
    assert torus.path(0, 15) == (0, 3, 15)
    assert torus.neighbours(0) == (1, 3, 4, 12)


def test_a_mesh_that_does_not_wrap_has_corners() -> None:
    mesh = fabric("mesh_2d_no_wrap", 9)
    assert mesh.neighbours(0) == (1, 3)
    assert mesh.neighbours(4) == (1, 3, 5, 7)
    assert mesh.path(2, 6) == (2, 1, 0, 3, 6)


def test_a_sip_stands_at_a_column_and_a_row() -> None:
    assert fabric("mesh_2d", 6, 3, 2).grid(5) == (2, 1)
    assert fabric("ring_1d", 6).grid(5) == (5, 0)


def test_through_a_switch_everyone_is_a_neighbour() -> None:
    star = fabric("ring_1d", 5, fabric="switch")
    assert star.neighbours(2) == (0, 1, 3, 4)
    assert star.path(0, 4) == (0, 4)
    assert star.diameter == 1


def test_a_crossing_is_two_ports_and_the_wire() -> None:
    # 8 ns a port and 20 mm at 10 ps per mm.
    assert fabric("ring_1d", 2).link(0, 1).latency_ps == 8000 + 200 + 8000


def test_a_crossing_of_the_switch_adds_the_switch_and_a_second_wire() -> None:
    assert (
        fabric("ring_1d", 2, fabric="switch").link(0, 1).latency_ps
        == 8000 + 200 + 5000 + 200 + 8000
    )


def test_a_link_leads_to_a_neighbour_and_to_no_other_sip() -> None:
    ring = fabric("ring_1d", 4)
    link = ring.link(3, 0)
    assert (link.port, link.bw_gbs, link.latency_ps) == ("io.ucie.sip0", 128, 16200)
    for stranger in (1, 3):
        with pytest.raises(AssertionError, match=f"SIPs 3 and {stranger} are not neighbours"):
            ring.link(3, stranger)


def test_there_is_one_link_per_ordered_pair_of_neighbours() -> None:
    ring = fabric("ring_1d", 3)
    assert [(link.source, link.target) for link in ring.links] == [
        (a, b) for a, b in product(range(3), repeat=2) if a != b
    ]


def test_links_are_between_the_neighbours_of_both_ends() -> None:
    for topology, count, w, h in FABRICS:
        sips = fabric(topology, count, w, h)
        pairs = {(a, b) for a in range(count) for b in sips.neighbours(a)}
        assert pairs == {(b, a) for a, b in pairs}


@pytest.mark.parametrize(("topology", "count", "w", "h"), FABRICS)
@pytest.mark.parametrize("kind", ["direct", "switch"])
def test_a_sip_is_passed_if_the_route_between_two_others_crosses_it(
    topology: str, count: int, w: int | None, h: int | None, kind: str
) -> None:
    sips = fabric(topology, count, w, h, fabric=kind)
    inner = {passed for a, b in product(range(count), repeat=2) for passed in sips.path(a, b)[1:-1]}
    assert {sip for sip in range(count) if sips.is_passed(sip)} == inner
    assert sips.forwards == bool(inner)


def test_the_layer_of_a_crossing_is_one_from_the_wrap_around_link_on() -> None:
    ring = SipFabric(variant(system__sips__count=8))
    assert [ring.layer(1, at, 5) for at in (1, 2, 3, 4)] == [0, 0, 0, 0]
    assert [ring.layer(6, at, 1) for at in (6, 7, 0)] == [0, 1, 1]
    assert [ring.layer(1, at, 6) for at in (1, 0, 7)] == [0, 1, 1]


def test_each_dimension_of_a_torus_has_its_own_dateline() -> None:
    torus = SipFabric(variant(system__sips__count=16, system__sips__topology="torus_2d"))
    # From column 3, row 3 to column 1, row 1: the wrap-around link first, in both dimensions.
    assert torus.path(15, 5) == (15, 12, 13, 1, 5)
    assert [torus.layer(15, at, 5) for at in (15, 12, 13, 1)] == [1, 1, 1, 1]
    # From column 2, row 0: the second crossing of the row wraps, the column begins anew.
    assert torus.path(2, 8) == (2, 3, 0, 4, 8)
    assert [torus.layer(2, at, 8) for at in (2, 3, 0, 4)] == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("changes", "layers"),
    [
        ({"system__sips__count": 3}, 1),
        ({"system__sips__count": 4}, 2),
        ({"system__sips__count": 9, "system__sips__topology": "torus_2d"}, 1),
        ({"system__sips__count": 16, "system__sips__topology": "torus_2d"}, 2),
        ({"system__sips__count": 16, "system__sips__topology": "mesh_2d_no_wrap"}, 1),
        ({"system__sips__count": 16, "system__sips__fabric": "switch"}, 1),
    ],
)
def test_only_rings_of_four_or_more_need_two_layers(
    changes: dict[str, object], layers: int
) -> None:
    assert SipFabric(variant(**changes)).layers == layers
