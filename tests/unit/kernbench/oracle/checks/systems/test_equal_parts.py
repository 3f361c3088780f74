from kernbench.oracle.checks.systems.equal_parts import mirror_images
from kernbench.oracle.theory.topology_file import TopologyFile
from tests.support.topologies import default_text, variant_text


def test_the_images_of_the_pes_in_the_west_are_those_in_the_east():
    assert mirror_images(TopologyFile.of(default_text())) == [2, 3, 0, 1, 6, 7, 4, 5]


def test_a_floor_plan_without_an_axis_has_no_images():
    moved = variant_text(cube__noc__hbm_hole_mm=[4.0, 4.0, 9.0, 8.0])
    assert mirror_images(TopologyFile.of(moved)) is None
