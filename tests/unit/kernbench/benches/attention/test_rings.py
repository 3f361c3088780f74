"""Rings of PEs: their order, and their neighbours."""

import pytest

from kernbench import mock
from kernbench.benches.attention.rings import Ring, RingPosition, cube_square, pe_ring
from runtime.core.coordinates import PeCoordinates
from runtime.language.mock import MockPe


def position(ring: Ring, cube: int, pe: int) -> RingPosition:
    found = list[RingPosition]()
    mock.run([(MockPe(PeCoordinates(0, cube, pe)), lambda: found.append(ring.here()))])
    return found[0]


def test_the_snake_joins_four_neighbouring_cubes_of_an_open_mesh():
    ring, east, south = cube_square(mesh_width=4), 1, 4
    steps = {"E": east, "S": south, "W": -east, "N": -south}
    cubes = [ring.ranks[rank][0] for rank in ring.order]
    assert cubes == [0, 1, 5, 4]
    for here, towards, cube in zip(cubes, ring.towards, [*cubes[1:], cubes[0]], strict=True):
        assert cube == here + steps[towards]


def test_a_pe_receives_from_where_the_pe_before_it_sends():
    corner = position(cube_square(4), cube=5, pe=0)
    assert (corner.rank, corner.source, corner.towards) == (3, "N", "W")
    assert [corner.rank_behind(steps) for steps in range(4)] == [3, 1, 0, 2]
    first = position(pe_ring(8), cube=0, pe=0)
    assert (first.source, first.towards, first.rank_behind(1)) == ("W", "E", 7)


def test_a_pe_outside_the_ring_is_refused_with_its_coordinates():
    with pytest.raises(ValueError, match="cube 0 pe 2 runs the kernel, but is not one"):
        mock.run([(MockPe(PeCoordinates(0, 0, 2)), pe_ring(2).here)])
