"""The graph of a SIP: nodes, links, positions, wires."""

import pytest

from runtime.core.trace import IO_CHIPLET, NO_PE
from runtime.model.graph import ChipGraph
from tests.support.topologies import small, variant

GRAPH = ChipGraph(variant())
NAMES = {node.name: node.index for node in GRAPH.nodes}


def neighbours(graph: ChipGraph, name: str) -> set[str]:
    return {
        graph.nodes[link.target].name
        for link in graph.links
        if graph.nodes[link.source].name == name
    }


def test_nodes_and_links_are_numbered_by_their_index() -> None:
    assert [node.index for node in GRAPH.nodes] == list(range(len(GRAPH.nodes)))
    assert [link.index for link in GRAPH.links] == list(range(len(GRAPH.links)))
    assert len(NAMES) == len(GRAPH.nodes)


def test_every_link_has_a_twin_in_the_other_direction() -> None:
    for link in GRAPH.links:
        twin = GRAPH.link(link.target, link.source)
        assert (twin.wire_ps, twin.bw_gbs) == (link.wire_ps, link.bw_gbs)


def test_coordinates_lead_to_the_named_node() -> None:
    assert GRAPH.pe(3, 5) == NAMES["cube3.pe5"]
    assert GRAPH.xbar(3, 5) == NAMES["cube3.pe5.xbar"]
    assert GRAPH.hbm(15, 7) == NAMES["cube15.pe7.hbm_ctrl"]
    assert GRAPH.sram(0) == NAMES["cube0.sram"]
    assert GRAPH.m_cpu(9) == NAMES["cube9.m_cpu"]
    assert GRAPH.port(3, "S") == NAMES["cube3.ucie.S"]
    assert [NAMES[name] for name in ("host", "io.pcie_ep", "io.io_cpu", "io.io_noc")] == [
        GRAPH.host,
        GRAPH.pcie_ep,
        GRAPH.io_cpu,
        GRAPH.io_noc,
    ]


def test_a_node_has_its_position_cube_and_pe() -> None:
    node = GRAPH.nodes[GRAPH.hbm(5, 2)]
    assert (node.kind, node.cube, node.pe) == ("hbm_ctrl", 5, 2)
    router = GRAPH.nodes[NAMES["cube1.router.r0c0"]]
    assert (router.cube, router.pe, router.x_mm, router.y_mm) == (1, NO_PE, 14.0, 1.0)
    assert GRAPH.nodes[GRAPH.io_cpu].cube == IO_CHIPLET


def test_no_router_stands_where_the_hbm_stack_is() -> None:
    routers = {name for name in NAMES if name.startswith("cube0.router")}
    hole = {f"cube0.router.r{row}c{col}" for row in (2, 3) for col in (2, 3)}
    assert len(routers) == 32
    assert not routers & hole


@pytest.mark.parametrize("hole", [[5.0, 4.0, 7.0, 8.0], [4.0, 5.0, 8.0, 7.0]])
def test_a_router_on_the_edge_of_the_hole_stays(hole: list[float]) -> None:
    graph = ChipGraph(small(cube__noc__hbm_hole_mm=hole))
    assert sum(node.kind == "router" for node in graph.nodes) == 4 * 36


def test_components_hang_on_the_nearest_router() -> None:
    assert neighbours(GRAPH, "cube0.m_cpu") == {"cube0.router.r4c2"}
    assert neighbours(GRAPH, "cube0.sram") == {"cube0.router.r4c3"}
    assert neighbours(GRAPH, "cube0.pe1") == {"cube0.router.r0c1", "cube0.pe1.xbar"}
    assert neighbours(GRAPH, "cube0.pe1.xbar") == {
        "cube0.router.r0c1",
        "cube0.pe1",
        "cube0.pe1.hbm_ctrl",
    }
    assert neighbours(GRAPH, "cube0.pe1.hbm_ctrl") == {"cube0.pe1.xbar"}


def test_a_tie_between_routers_goes_to_the_lowest_row_and_column() -> None:
    assert neighbours(GRAPH, "cube5.ucie.N") == {"cube1.ucie.S", "cube5.router.r0c2"}
    assert neighbours(GRAPH, "cube5.ucie.E") == {"cube6.ucie.W", "cube5.router.r2c5"}


def test_nearest_is_exact_where_binary_fractions_would_break_a_tie() -> None:
    # Routers stand at 0.1, 0.3 and 0.5 mm. In binary, 0.3 - 0.2 is less than 0.2 - 0.1.
    origin = [0.1, 0.1]
    topology = small(
        cube__size_mm={"w": 0.6, "h": 0.6},
        cube__noc__cols=3,
        cube__noc__rows=3,
        cube__noc__hbm_hole_mm=[0, 0, 0, 0],
        cube__ucie_pos_mm=dict.fromkeys("NESW", origin),
        cube__pe_layout__pos_mm={corner: [origin] for corner in ("NW", "NE", "SW", "SE")},
        cube__m_cpu__pos_mm=[0.2, 0.2],
        cube__sram__pos_mm=[0.2, 0.1],
    )
    graph = ChipGraph(topology)
    assert neighbours(graph, "cube0.sram") == {"cube0.router.r0c0"}
    assert neighbours(graph, "cube0.m_cpu") == {"cube0.router.r0c0"}


def test_a_cube_has_a_port_where_it_has_a_neighbour() -> None:
    assert {name for name in NAMES if name.startswith("cube0.ucie")} == {
        "cube0.ucie.E",
        "cube0.ucie.S",
    }
    assert {name for name in NAMES if name.startswith("cube15.ucie")} == {
        "cube15.ucie.N",
        "cube15.ucie.W",
        "cube15.ucie.S",
    }


@pytest.mark.parametrize(
    ("edge", "ports"),
    [
        ("N", {"io.ucie.mesh0": "cube0.ucie.N", "io.ucie.mesh1": "cube1.ucie.N"}),
        ("S", {"io.ucie.mesh0": "cube4.ucie.S", "io.ucie.mesh1": "cube5.ucie.S"}),
        (
            "W",
            {
                "io.ucie.mesh0": "cube0.ucie.W",
                "io.ucie.mesh1": "cube2.ucie.W",
                "io.ucie.mesh2": "cube4.ucie.W",
            },
        ),
        (
            "E",
            {
                "io.ucie.mesh0": "cube1.ucie.E",
                "io.ucie.mesh1": "cube3.ucie.E",
                "io.ucie.mesh2": "cube5.ucie.E",
            },
        ),
    ],
)
def test_the_io_chiplet_joins_every_column_or_row_of_its_edge(
    edge: str, ports: dict[str, str]
) -> None:
    graph = ChipGraph(small(sip__cube_mesh={"w": 2, "h": 3}, sip__io_chiplet__edge=edge))
    assert neighbours(graph, "io.io_noc") == {"io.io_cpu", *ports}
    for port, cube_port in ports.items():
        assert neighbours(graph, port) == {"io.io_noc", cube_port}


def test_wires_and_overheads_are_picoseconds_from_the_file() -> None:
    assert GRAPH.nodes[GRAPH.port(0, "E")].overhead_ps == 8000
    assert GRAPH.nodes[GRAPH.pe(0, 0)].overhead_ps == 0
    # A pitch of 2 mm and a gap of 1 mm at 10 ps per mm; the port at (12, 6) is 1 + 1 mm from the
    # router at (11, 5).
    assert GRAPH.link(NAMES["cube0.router.r0c0"], NAMES["cube0.router.r0c1"]).wire_ps == 20
    assert GRAPH.link(NAMES["cube0.ucie.E"], NAMES["cube1.ucie.W"]).wire_ps == 10
    assert GRAPH.link(NAMES["cube0.router.r2c5"], NAMES["cube0.ucie.E"]).wire_ps == 20


def test_only_the_wires_behind_ucie_ports_have_no_bandwidth() -> None:
    for link in GRAPH.links:
        kinds = {GRAPH.nodes[link.source].kind, GRAPH.nodes[link.target].kind}
        assert (link.bw_gbs is None) == (kinds in ({"ucie", "router"}, {"ucie", "io_noc"}))


def test_bandwidths_come_from_the_file() -> None:
    assert GRAPH.link(NAMES["cube0.sram"], NAMES["cube0.router.r4c3"]).bw_gbs == 128
    assert GRAPH.link(GRAPH.host, GRAPH.pcie_ep).bw_gbs == 64
    assert GRAPH.link(GRAPH.m_cpu(0), NAMES["cube0.router.r4c2"]).bw_gbs == 64


def test_an_implementation_is_the_kind_unless_the_file_names_another() -> None:
    graph = ChipGraph(small(impl={"hbm_ctrl": "my.memories:Paged", "sram": "banked"}))
    implementations = {node.kind: node.impl for node in graph.nodes}
    assert (implementations["hbm_ctrl"], implementations["sram"], implementations["router"]) == (
        "my.memories:Paged",
        "banked",
        "router",
    )


def test_pes_are_numbered_corner_by_corner() -> None:
    places = [
        (GRAPH.nodes[GRAPH.pe(0, pe)].x_mm, GRAPH.nodes[GRAPH.pe(0, pe)].y_mm) for pe in range(8)
    ]
    assert places == [(1, 1), (3, 1), (11, 1), (9, 1), (1, 11), (3, 11), (11, 11), (9, 11)]


def test_one_cube_with_one_pe_is_a_chip() -> None:
    layout = {"pe_per_corner": 1, "corners": ["SE"], "pos_mm": {"SE": [[11.0, 11.0]]}}
    graph = ChipGraph(variant(sip__cube_mesh={"w": 1, "h": 1}, cube__pe_layout=layout))
    assert [node.name for node in graph.nodes if node.kind in ("pe", "ucie")] == [
        "io.ucie.mesh0",
        "cube0.pe0",
        "cube0.ucie.S",
    ]
