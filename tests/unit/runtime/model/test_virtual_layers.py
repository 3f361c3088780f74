"""Virtual layers: which hops get which, and how many there are."""

from itertools import pairwise

import pytest

from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.schema.topology_schema import Topology
from runtime.model.sip_fabric import SipFabric
from runtime.model.virtual_layers import VirtualLayers
from tests.support.channel_dependencies import cycle_of_channels, no_layers
from tests.support.topologies import small, variant

NO_HOLE = {"cube__noc__hbm_hole_mm": [0.0, 0.0, 0.0, 0.0]}
ONE_CUBE = {"sip__cube_mesh": {"w": 1, "h": 1}}


def layers(topology: Topology) -> VirtualLayers:
    graph = ChipGraph(topology)
    return VirtualLayers(graph, ChipRoutes(graph), SipFabric(topology))


@pytest.mark.parametrize(
    ("changes", "count"),
    [({}, 2), (NO_HOLE, 2), (ONE_CUBE, 1), (ONE_CUBE | NO_HOLE, 1)],
    ids=["shipped", "without a hole", "one cube", "a mesh"],
)
def test_the_shipped_file_has_two_layers_and_a_single_cube_one(
    changes: dict[str, object], count: int
) -> None:
    assert layers(variant(**changes)).count == count


@pytest.mark.parametrize(("sips", "count"), [(1, 1), (2, 1), (3, 1), (4, 2), (7, 2)])
def test_a_ring_of_four_sips_or_more_needs_a_dateline(sips: int, count: int) -> None:
    assert layers(variant(**ONE_CUBE, system__sips__count=sips)).count == count


def test_a_segment_has_one_layer_up_to_the_mesh_of_the_next_cube() -> None:
    topology = variant()
    graph = ChipGraph(topology)
    routes = ChipRoutes(graph)
    of = VirtualLayers(graph, routes, SipFabric(topology)).of
    # Cube 1 -> cube 6: heading E in cube 1, heading S in cube 2, an arrival in cube 6.
    route = routes.route(graph.pe(1, 0), graph.pe(6, 7))
    segments: list[set[int]] = [set()]
    for hop, layer in zip(pairwise(route.nodes), of(route), strict=True):
        segments[-1].add(layer)
        if [graph.nodes[node].kind for node in hop] == ["ucie", "router"]:
            segments.append(set())
    assert [len(layers) for layers in segments] == [1, 1, 1]


def test_a_layer_depends_on_the_target_alone_where_routes_to_it_meet() -> None:
    topology = small()
    graph = ChipGraph(topology)
    routes = ChipRoutes(graph)
    of = VirtualLayers(graph, routes, SipFabric(topology)).of
    last = {of(routes.route(graph.pe(0, pe), graph.sram(0)))[-1] for pe in range(4)}
    assert len(last) == 1


def test_without_layers_the_routes_of_the_shipped_file_have_a_cycle() -> None:
    topology = small(system__sips__count=1)
    cycle = cycle_of_channels(topology, no_layers(topology))
    assert len(cycle) > 3
    assert cycle[0] == cycle[-1]
