"""The order of the cubes by distance from the IO chiplet."""

import pytest

from kernbench.benches.collective_perf.cubes import nearest_cubes
from tests.support.topologies import variant


@pytest.mark.parametrize(
    ("edge", "cubes"),
    [
        ("S", (6, 7, 8, 3, 4, 5, 0, 1, 2)),
        ("N", (0, 1, 2, 3, 4, 5, 6, 7, 8)),
        ("W", (0, 3, 6, 1, 4, 7, 2, 5, 8)),
    ],
)
def test_the_cubes_at_the_edge_of_the_io_chiplet_come_first(edge: str, cubes: tuple[int, ...]):
    topology = variant(sip__cube_mesh={"w": 3, "h": 3}, sip__io_chiplet__edge=edge)
    assert nearest_cubes(topology) == cubes
