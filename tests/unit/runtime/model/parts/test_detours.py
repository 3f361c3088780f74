"""Routes round what is down: between cubes, in a cube, between SIPs, and where there is none."""

from itertools import pairwise, product
from typing import Any

import pytest

from runtime.core.errors import ConfigError
from runtime.model.dependencies import Dependencies, reachable_ends
from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes
from runtime.model.sip_fabric import SipFabric
from runtime.model.topology import Topology, parse_topology
from tests.support.topologies import SOURCE, variant, variant_text

DOWN = {"down": True}


def without(*names: str, **changes: Any) -> Topology:
    return variant(overrides=dict.fromkeys(names, DOWN), **changes)


def refusal(*names: str, **changes: Any) -> str:
    with pytest.raises(ConfigError) as raised:
        parse_topology(variant_text(overrides=dict.fromkeys(names, DOWN), **changes), SOURCE)
    return str(raised.value).removeprefix(f"{SOURCE}: ")


def cubes(topology: Topology, source: int, target: int) -> list[int]:
    """The cubes of a route between the M_CPUs of two cubes."""
    graph = ChipGraph(topology)
    nodes = ChipRoutes(graph).route(graph.m_cpu(source), graph.m_cpu(target)).nodes
    return list(dict.fromkeys(graph.nodes[node].cube for node in nodes))


def test_a_pair_with_a_whole_route_keeps_it() -> None:
    assert cubes(without("cube6.ucie.W"), 4, 1) == [4, 5, 1]


def test_a_port_that_is_down_is_so_in_both_directions() -> None:
    for name in ("cube6.ucie.W", "cube5.ucie.E", "cube5.ucie.E->cube6.ucie.W"):
        topology = without(name)
        # Up to the root, cube 0, and down again: 5 -> 1 -> 2 -> 6.
        assert cubes(topology, 5, 6) == [5, 1, 2, 6]
        assert cubes(topology, 6, 5) == [6, 2, 1, 5]


def test_a_cube_that_is_down_is_not_passed() -> None:
    assert cubes(without("cube5"), 4, 6) == [4, 0, 1, 2, 6]


def test_the_io_chiplet_uses_another_port_where_its_own_is_down() -> None:
    graph = ChipGraph(without("cube12.ucie.S"))
    routes = ChipRoutes(graph)
    down = [graph.nodes[each].name for each in routes.route(graph.host, graph.m_cpu(12)).nodes]
    assert [name for name in down if "mesh" in name] == ["io.ucie.mesh1"]
    up = [graph.nodes[each].name for each in routes.route(graph.m_cpu(12), graph.host).nodes]
    assert [name for name in up if "mesh" in name] == ["io.ucie.mesh1"]


def test_a_route_in_a_cube_avoids_a_link_of_a_router() -> None:
    name = "cube3.router.r0c0->cube3.router.r0c1"
    graph = ChipGraph(without(name))
    routes = ChipRoutes(graph)
    # PE 0 is at r0c0 and PE 1 at r0c1: three links instead of one.
    lengths = [len(routes.route(graph.pe(cube, 0), graph.pe(cube, 1)).nodes) - 3 for cube in (2, 3)]
    assert lengths == [1, 3]


@pytest.mark.parametrize(
    "names", [("cube5.ucie.E", "cube9.ucie.N"), ("cube5", "cube10"), ("cube0",)]
)
def test_links_of_detours_have_no_cycle_of_dependencies(names: tuple[str, ...]) -> None:
    topology = without(*names)
    graph = ChipGraph(topology)
    routes, plain = ChipRoutes(graph), ChipRoutes(ChipGraph(variant()))
    after: dict[bool, Dependencies] = {True: {}, False: {}}
    usable = [cube for cube in range(topology.cubes) if cube not in graph.down.cubes]
    for source, target in product(usable, repeat=2):
        ends = graph.m_cpu(source), graph.m_cpu(target)
        route = routes.route(*ends).nodes
        hops = [
            hop for hop in pairwise(route) if {graph.nodes[node].kind for node in hop} == {"ucie"}
        ]
        is_detour = route != plain.route(*ends).nodes
        for hop, following in pairwise(hops):
            after[is_detour].setdefault(hop, set()).add(following)
    assert after[True], "some routes are detours"
    assert all(reachable_ends(each) is not None for each in after.values())


def test_sips_forward_round_a_link_that_is_down() -> None:
    fabric = SipFabric(without("sip0.ucie.sip1", system__sips__count=4))
    assert [fabric.path(0, target) for target in range(4)] == [
        (0,),
        (0, 3, 2, 1),
        (0, 3, 2),
        (0, 3),
    ]
    assert fabric.neighbours(0) == (3,)
    assert fabric.diameter == 3


def test_no_route_between_sips_returns_to_a_sip() -> None:
    shape = {"topology": "mesh_2d_no_wrap", "w": 3, "h": 3, "count": 9}
    content = {f"system__sips__{key}": value for key, value in shape.items()}
    fabric = SipFabric(without("sip4.ucie.sip5", "sip1.ucie.sip4", **content))
    for source, target in product(range(9), repeat=2):
        path = fabric.path(source, target)
        assert len(set(path)) == len(path)


@pytest.mark.parametrize(
    ("names", "changes", "text"),
    [
        (("cube5.ucie.*",), {}, "what is down leaves no route from sip0.cube0 to sip0.cube5"),
        (("io.ucie.mesh*",), {}, "what is down leaves no route from sip0.io.io_noc to sip0.cube0"),
        (("cube*",), {}, "overrides: all cubes of sip0 are down"),
        (("cube3.pe*",), {}, "overrides: all PEs of sip0.cube3 are down; then the cube is"),
        (
            ("cube0.router.r0c0->cube0.router.*",),
            {},
            "what is down leaves no route from sip0.cube0.router.r0c1 to sip0.cube0.router.r0c0",
        ),
        (("sip0.ucie.sip1",), {}, "what is down leaves no route from sip0 to sip1"),
        (
            ("sip0.ucie.switch",),
            {"system__sips__fabric": "switch"},
            "what is down leaves no route from sip0 to sip1",
        ),
        (
            ("cube5.ucie.E",),
            {"noc__flow_control": "credits"},
            "noc.flow_control: links of sip0 are down, and credits have no virtual layers",
        ),
    ],
)
def test_an_error_names_the_pair_that_has_no_route(
    names: tuple[str, ...], changes: dict[str, Any], text: str
) -> None:
    assert text in refusal(*names, **changes)


@pytest.mark.parametrize(
    ("changes", "has_cycles"),
    [
        # A ring that is cut is a line, on which every route has one direction.
        ({"system__sips__count": 6, "overrides": {"sip0.ucie.sip1": {"down": True}}}, False),
        ({"system__sips__count": 6}, False),
        # Round the middle of this grid routes turn in both senses.
        (
            {
                "system__sips__count": 9,
                "system__sips__topology": "mesh_2d_no_wrap",
                "overrides": {"sip4.ucie.sip5": {"down": True}, "sip3.ucie.sip4": {"down": True}},
            },
            True,
        ),
    ],
)
def test_routes_between_sips_close_a_circle_or_do_not(
    changes: dict[str, Any], has_cycles: bool
) -> None:
    assert SipFabric(variant(**changes)).has_cycles is has_cycles
