"""Routes inside a SIP: cube mesh, router mesh, IO chiplet, latencies."""

from itertools import pairwise, product

import pytest

from runtime.model.graph import ChipGraph
from runtime.model.routing import ChipRoutes, Route
from tests.support.topologies import small, variant

GRAPH = ChipGraph(variant())
ROUTES = ChipRoutes(GRAPH)
NAMES = {node.name: node.index for node in GRAPH.nodes}


def names(graph: ChipGraph, route: Route) -> list[str]:
    return [graph.nodes[node].name for node in route.nodes]


def route_names(source: str, target: str) -> list[str]:
    return names(GRAPH, ROUTES.route(NAMES[source], NAMES[target]))


def in_cube(source: str, target: str) -> str:
    """The routers between two nodes of cube 0, without the name of the cube."""
    return " ".join(
        name.split(".")[-1] for name in route_names(f"cube0.{source}", f"cube0.{target}")
    )


def endpoints(graph: ChipGraph) -> list[int]:
    return [node.index for node in graph.nodes if node.kind not in ("ucie", "router")]


SHAPES = [(w, h, edge) for (w, h), edge in product(((1, 1), (2, 3), (3, 1)), "NESW")]


@pytest.mark.parametrize(("w", "h", "edge"), SHAPES)
def test_the_delays_of_the_stages_sum_to_all_overheads_entered_and_all_wires(
    w: int, h: int, edge: str
) -> None:
    layout = {"cube__pe_layout__corners": ["NW", "SE"], "cube__pe_layout__pe_per_corner": 1}
    graph = ChipGraph(
        variant(sip__cube_mesh={"w": w, "h": h}, sip__io_chiplet__edge=edge, **layout)
    )
    routes = ChipRoutes(graph)
    for source, target in product(endpoints(graph), repeat=2):
        route = routes.route(source, target)
        hops = [graph.link(a, b) for a, b in pairwise(route.nodes)]
        assert (route.nodes[0], route.nodes[-1]) == (source, target)
        assert len(set(route.nodes)) == len(route.nodes)
        assert route.latency_ps == sum(
            hop.wire_ps + graph.nodes[hop.target].overhead_ps for hop in hops
        )
        assert [stage.link for stage in route.stages] == [
            hop.index for hop in hops if hop.bw_gbs is not None
        ]
        assert routes.stages(source, target) == route.stages


@pytest.mark.parametrize(("w", "h", "edge"), SHAPES)
def test_a_route_passes_through_no_component_but_its_own(w: int, h: int, edge: str) -> None:
    graph = ChipGraph(small(sip__cube_mesh={"w": w, "h": h}, sip__io_chiplet__edge=edge))
    routes = ChipRoutes(graph)
    for source, target in product(endpoints(graph)[::3], endpoints(graph)[::4]):
        own = {(graph.nodes[end].cube, graph.nodes[end].pe) for end in (source, target)}
        for node in routes.route(source, target).nodes[1:-1]:
            place = graph.nodes[node]
            if place.kind not in ("router", "ucie", "io_noc", "io_cpu", "pcie_ep"):
                assert place.kind == "xbar"
                assert (place.cube, place.pe) in own


def test_a_pe_reaches_its_own_hbm_without_a_mesh_hop_in_both_directions() -> None:
    assert in_cube("pe0", "pe0.hbm_ctrl") == "pe0 xbar hbm_ctrl"
    assert in_cube("pe0.hbm_ctrl", "pe0") == "hbm_ctrl xbar pe0"
    assert ROUTES.route(GRAPH.pe(0, 0), GRAPH.hbm(0, 0)).latency_ps == 2000


def test_a_pe_reaches_another_slice_through_the_mesh_and_that_slices_crossbar() -> None:
    assert in_cube("pe0", "pe1.hbm_ctrl") == "pe0 r0c0 r0c1 xbar hbm_ctrl"
    assert in_cube("pe1.hbm_ctrl", "pe0") == "hbm_ctrl xbar r0c1 r0c0 pe0"


def test_pes_that_share_a_router_meet_there() -> None:
    positions = {corner: [[1.0, 1.0], [1.0, 1.0]] for corner in ("NW", "NE", "SW", "SE")}
    graph = ChipGraph(variant(cube__pe_layout__pos_mm=positions))
    route = ChipRoutes(graph).route(graph.pe(0, 0), graph.hbm(0, 1))
    expected = ["cube0.pe0", "cube0.router.r0c0", "cube0.pe1.xbar", "cube0.pe1.hbm_ctrl"]
    assert names(graph, route) == expected


def test_a_component_reaches_itself_without_moving() -> None:
    route = ROUTES.route(GRAPH.pe(0, 0), GRAPH.pe(0, 0))
    assert (route.nodes, route.stages, route.latency_ps) == ((GRAPH.pe(0, 0),), (), 0)


def test_columns_come_before_rows_in_the_router_grid() -> None:
    assert in_cube("router.r0c0", "router.r1c4") == "r0c0 r0c1 r0c2 r0c3 r0c4 r1c4"
    assert in_cube("router.r5c5", "router.r0c4") == "r5c5 r5c4 r4c4 r3c4 r2c4 r1c4 r0c4"


def test_routes_go_round_the_hole_by_a_shortest_path() -> None:
    assert in_cube("router.r2c0", "router.r2c5") == "r2c0 r2c1 r1c1 r1c2 r1c3 r1c4 r1c5 r2c5"
    assert in_cube("router.r1c3", "router.r4c3") == "r1c3 r1c4 r2c4 r3c4 r4c4 r4c3"
    assert in_cube("router.r1c2", "router.r4c2") == "r1c2 r1c1 r2c1 r3c1 r4c1 r4c2"


def test_without_a_hole_the_router_grid_is_xy() -> None:
    graph = ChipGraph(
        small(cube__noc__hbm_hole_mm=[0, 0, 0, 0], cube__noc__rows=4, cube__noc__cols=5)
    )
    routes, at = ChipRoutes(graph), {node.name: node.index for node in graph.nodes}
    for (r0, c0), (r1, c1) in product(product(range(4), range(5)), repeat=2):
        x = [(r0, c) for c in (range(c0, c1) if c0 < c1 else range(c0, c1, -1))]
        y = [(r, c1) for r in (range(r0, r1) if r0 < r1 else range(r0, r1, -1))]
        expected = [at[f"cube0.router.r{r}c{c}"] for r, c in [*x, *y, (r1, c1)]]
        assert list(routes.route(expected[0], expected[-1]).nodes) == expected


def cubes_on(path: list[str]) -> list[str]:
    return list(dict.fromkeys(name.split(".")[0] for name in path if ".ucie." in name))


def test_columns_come_before_rows_in_the_cube_mesh() -> None:
    assert cubes_on(route_names("cube0.pe0", "cube10.pe0")) == [
        "cube0",
        "cube1",
        "cube2",
        "cube6",
        "cube10",
    ]
    assert cubes_on(route_names("cube10.pe0", "cube0.pe0")) == [
        "cube10",
        "cube9",
        "cube8",
        "cube4",
        "cube0",
    ]


@pytest.mark.parametrize(
    ("edge", "cubes"),
    [
        ("N", ["cube2", "cube0", "io"]),
        ("S", ["cube2", "cube4", "io"]),
        ("W", ["cube2", "io"]),
        ("E", ["cube2", "cube3", "io"]),
    ],
)
def test_the_route_to_the_io_chiplet_and_back_is_straight(edge: str, cubes: list[str]) -> None:
    graph = ChipGraph(small(sip__cube_mesh={"w": 2, "h": 3}, sip__io_chiplet__edge=edge))
    routes = ChipRoutes(graph)
    assert cubes_on(names(graph, routes.route(graph.pe(2, 0), graph.io_noc))) == cubes
    assert cubes_on(names(graph, routes.route(graph.host, graph.m_cpu(2)))) == cubes[::-1]


def test_the_host_reaches_a_cube_through_the_io_chiplet() -> None:
    expected = [
        "host",
        "io.pcie_ep",
        "io.io_cpu",
        "io.io_noc",
        "io.ucie.mesh2",
        "cube14.ucie.S",
        "cube14.router.r5c2",
    ]
    assert route_names("host", "cube14.m_cpu")[:7] == expected
    assert route_names("io.io_noc", "host") == ["io.io_noc", "io.io_cpu", "io.pcie_ep", "host"]


def test_the_port_before_a_crossing_is_waited_for_and_the_port_after_it_follows() -> None:
    route = ROUTES.route(GRAPH.io_noc, GRAPH.m_cpu(12))
    crossing = route.stages[0]
    # Before: the port of the IO chiplet. After: 1 mm of gap, the cube's port, 1 + 1 mm to the
    # router at (5, 11), the router.
    assert (crossing.pre_ps, crossing.post_ps) == (8000, 10 + 8000 + 20 + 1000)


def test_a_link_has_one_stage_so_that_the_order_of_events_is_the_order_at_the_link() -> None:
    first = {stage.link: stage for stage in ROUTES.route(GRAPH.pe(0, 0), GRAPH.hbm(5, 0)).stages}
    second = {stage.link: stage for stage in ROUTES.route(GRAPH.pe(0, 3), GRAPH.sram(6)).stages}
    shared = first.keys() & second.keys()
    assert GRAPH.link(NAMES["cube0.ucie.E"], NAMES["cube1.ucie.W"]).index in shared
    assert all(first[link] is second[link] for link in shared)


def test_a_route_is_computed_once() -> None:
    assert ROUTES.route(GRAPH.host, GRAPH.sram(3)) is ROUTES.route(GRAPH.host, GRAPH.sram(3))
