from kernbench.oracle.theory.paths.sip_grid import SipGrid


def test_paths_take_the_shorter_direction_of_a_ring_and_columns_of_a_grid_first() -> None:
    ring, grid = SipGrid(4), SipGrid(3, 2, wraps=False)
    assert [ring.path(0, 1), ring.path(0, 3), ring.path(3, 1)] == [[0, 1], [0, 3], [3, 0, 1]]
    assert [grid.path(0, 5), grid.path(5, 0)] == [[0, 1, 2, 5], [5, 4, 3, 0]]
    assert (ring.diameter, grid.diameter) == (2, 3)
    assert (ring.most_neighbours, grid.most_neighbours, SipGrid(2).most_neighbours) == (2, 3, 1)
