"""Routes derived from the floor plan: around the hole of the router grid, with their lengths."""

from kernbench.theory.floor_plan import CubeFloorPlan
from kernbench.theory.topology_file import TopologyFile
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
