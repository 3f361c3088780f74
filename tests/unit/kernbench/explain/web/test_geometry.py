"""The drawing has what the graph of a SIP has, where the topology file puts it."""

import pytest

from kernbench.explain.web.fabric_geometry import FabricDrawing
from kernbench.explain.web.geometry import PE, SipDrawing
from runtime.model.graph import ChipGraph
from runtime.model.sip_fabric import SipFabric
from tests.support.topologies import small, variant

ONE_PE = {
    "sip__cube_mesh": {"w": 1, "h": 1},
    "cube__pe_layout__pe_per_corner": 1,
    "cube__pe_layout__corners": ["NW"],
}
MACHINES = {
    "2 x 2 cubes": small(),
    "2 x 3 cubes, the chiplet in the west": small(
        sip__cube_mesh={"w": 2, "h": 3}, sip__io_chiplet__edge="W"
    ),
    "one PE": variant(**ONE_PE),
}


@pytest.fixture(params=MACHINES, name="drawing")
def _drawing(request: pytest.FixtureRequest) -> SipDrawing:
    return SipDrawing(ChipGraph(MACHINES[request.param]))


def test_pes_are_drawn_at_their_positions_in_the_file() -> None:
    topology = MACHINES["2 x 2 cubes"]
    drawing = SipDrawing(ChipGraph(topology))
    pes = {(box.cube, box.pe): (box.x_mm, box.y_mm) for box in drawing.boxes if box.kind == PE}
    # Cubes of 12 mm with gaps of 1 mm; one PE per corner, the first of each corner.
    corners = [(1.0, 1.0), (11.0, 1.0), (1.0, 11.0), (11.0, 11.0)]
    origins = [(0.0, 0.0), (13.0, 0.0), (0.0, 13.0), (13.0, 13.0)]
    assert pes == {
        (cube, pe): (left + x, top + y)
        for cube, (left, top) in enumerate(origins)
        for pe, (x, y) in enumerate(corners)
    }


def test_every_link_has_one_segment_with_its_name_and_bandwidth(drawing: SipDrawing) -> None:
    graph = drawing._graph
    assert [segment.name for segment in drawing.segments] == list(graph.link_names)
    assert [segment.bw_gbs for segment in drawing.segments] == [link.bw_gbs for link in graph.links]


def test_no_two_segments_cover_each_other_and_none_is_a_point(drawing: SipDrawing) -> None:
    lines = {(each.x0, each.y0, each.x1, each.y1) for each in drawing.segments}
    assert len(lines) == len(drawing.segments)
    assert all((x0, y0) != (x1, y1) for x0, y0, x1, y1 in lines)


def test_routers_leave_the_hole_of_the_stack_free(drawing: SipDrawing) -> None:
    for stack in drawing.stacks:
        for router in drawing.routers:
            beside = abs(router.x_mm - stack.x_mm) >= stack.w_mm / 2
            assert beside or abs(router.y_mm - stack.y_mm) >= stack.h_mm / 2


def test_the_slices_of_a_cube_fill_its_stack(drawing: SipDrawing) -> None:
    for stack in drawing.stacks:
        slices = [each for each in drawing.slices if each.cube == stack.cube]
        area = sum(each.w_mm * each.h_mm for each in slices)
        assert area == pytest.approx(stack.w_mm * stack.h_mm)


@pytest.mark.parametrize("kind", ["ring_1d", "torus_2d", "mesh_2d_no_wrap"])
@pytest.mark.parametrize("sips", [1, 2, 4, 9, 64])
def test_the_network_between_sips_has_its_links(kind: str, sips: int) -> None:
    if kind != "ring_1d" and sips == 2:
        sips = 16
    topology = small(system__sips__topology=kind, system__sips__count=sips)
    drawing = FabricDrawing(topology)
    assert len(set(drawing.points)) == sips
    names = {f"SIP {link.source} -> SIP {link.target}" for link in SipFabric(topology).links}
    assert {link.segment.name for link in drawing.links} == names


def test_through_a_switch_each_sip_has_one_link_each_way() -> None:
    drawing = FabricDrawing(small(system__sips__count=3, system__sips__fabric="switch"))
    assert [(link.sip, link.port) for link in drawing.links] == [
        (0, "ucie.switch"),
        (1, "ucie.switch"),
        (2, "ucie.switch"),
        (0, "switch.out"),
        (1, "switch.out"),
        (2, "switch.out"),
    ]
