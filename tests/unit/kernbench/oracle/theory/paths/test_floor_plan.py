"""Routes derived from the floor plan: around the hole of the router grid, with their lengths."""

from itertools import pairwise
from random import Random

import pytest
import yaml

from kernbench.oracle.theory.paths.floor_plan import CubeFloorPlan, FloorPlan
from kernbench.oracle.theory.paths.route_times import RouteTimes
from kernbench.oracle.theory.paths.routes import RouteEnd, link_gbs
from kernbench.oracle.theory.topology_file import TopologyFile
from runtime.core.simtime import exact
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import parse_topology
from tests.support.random_topologies import random_content
from tests.support.topologies import variant_text


def hops(source: tuple[int, int], target: tuple[int, int], **changes: object) -> int:
    return len(CubeFloorPlan(TopologyFile.of(variant_text(**changes))).mesh(source, target))


def test_a_route_goes_around_the_hole_only_where_the_hole_lies_straight_between() -> None:
    # The HBM stack occupies rows and columns 2 and 3 of six.
    assert hops((2, 0), (2, 5)) == 5 + 2
    assert hops((2, 0), (3, 5)) == 5 + 3
    assert hops((0, 2), (5, 2)) == 5 + 2
    assert hops((0, 0), (5, 5)) == 10
    assert hops((2, 0), (5, 3)) == 6
    assert hops((2, 0), (2, 5), cube__noc__hbm_hole_mm=[0.0, 0.0, 0.0, 0.0]) == 5


def test_hops_along_a_row_are_as_long_as_columns_are_wide() -> None:
    cube = CubeFloorPlan(TopologyFile.of(variant_text(cube__size_mm={"w": 18.0, "h": 12.0})))
    assert [hop.mm for hop in cube.mesh((0, 0), (1, 1))] == ["3", "2"]


@pytest.mark.parametrize("seed", range(6))
def test_routes_on_random_machines_are_those_of_the_model(seed: int) -> None:
    text = yaml.safe_dump(random_content(Random(seed)))
    file = TopologyFile.of(text)
    topology = parse_topology(text, "topology", file["system.sips.count"])
    plan, times, graph = FloorPlan(file), RouteTimes(file), ChipGraph(topology)
    routes, random = ChipRoutes(graph), Random(seed)
    for _ in range(40):
        (source, near), (target, far) = (_drawn(graph, random) for _ in range(2))
        if near == far:
            continue
        route, nodes = plan.route(source, target), routes.route(near, far).nodes
        assert [hop.node for hop in route] == [graph.nodes[node].name for node in nodes[1:]]
        timed = times.hops(route, source)
        links = [graph.link(*each) for each in pairwise(nodes)]
        assert [hop.wire_ps for hop in timed] == [link.wire_ps for link in links]
        assert [hop.overhead_ps for hop in timed] == [
            graph.nodes[link.target].overhead_ps for link in links
        ]
        for hop, keyed, link in zip(timed, route, links, strict=True):
            assert (hop.link is None) == (link.bw_gbs is None)
            if hop.link and link.bw_gbs is not None:
                assert hop.link.bw_gbs == exact(link.bw_gbs)
                assert hop.link.name == graph.link_names[link.index]
                assert link_gbs(hop.link.name) == keyed.gbs
    sips = SipFabric(topology)
    assert [plan.sip_path(0, sip) for sip in range(1, topology.sips)] == [
        list(sips.path(0, sip)) for sip in range(1, topology.sips)
    ]


def _drawn(graph: ChipGraph, random: Random) -> tuple[RouteEnd, int]:
    """A component, and its node in the graph of the model."""
    cube = random.randrange(graph.topology.cubes)
    pe = random.randrange(graph.topology.pes_per_cube)
    return random.choice(
        [
            (RouteEnd("host"), graph.host),
            (RouteEnd("io_cpu"), graph.io_cpu),
            (RouteEnd("io_noc"), graph.io_noc),
            (RouteEnd("m_cpu", 0, cube), graph.m_cpu(cube)),
            (RouteEnd("sram", 0, cube), graph.sram(cube)),
            (RouteEnd("pe", 0, cube, pe), graph.pe(cube, pe)),
            (RouteEnd("hbm", 0, cube, pe), graph.hbm(cube, pe)),
        ]
    )
