import pytest

from kernbench.oracle.theory.paths.sip_grid import SipGrid


def test_paths_take_the_shorter_direction_of_a_ring_and_columns_of_a_grid_first() -> None:
    ring, grid = SipGrid(4), SipGrid(3, 2, wraps=False)
    assert [ring.path(0, 1), ring.path(0, 3), ring.path(3, 1)] == [[0, 1], [0, 3], [3, 0, 1]]
    assert [grid.path(0, 5), grid.path(5, 0)] == [[0, 1, 2, 5], [5, 4, 3, 0]]
    assert (ring.diameter, grid.diameter) == (2, 3)
    assert (ring.most_neighbours, grid.most_neighbours, SipGrid(2).most_neighbours) == (2, 3, 1)


@pytest.mark.parametrize(
    "grid",
    [SipGrid(1), SipGrid(2), SipGrid(7), SipGrid(8), SipGrid(4, 3), SipGrid(3, 4, wraps=False)],
)
def test_the_distance_is_the_number_of_links_on_the_path(grid: SipGrid) -> None:
    for source in range(grid.sips):
        for target in range(grid.sips):
            assert grid.distance(source, target) == len(grid.path(source, target)) - 1
