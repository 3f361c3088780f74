"""Neighbour topologies: pure functions from a position to its neighbours by direction."""

from collections.abc import Callable

Neighbours = dict[str, int]
"""Direction -> index of the neighbour. A direction without a neighbour is absent."""


def ring_1d(index: int, w: int, h: int) -> Neighbours:
    """East to the next, west to the previous, round the end; the grid is taken as one row of `w * h`."""
    count = w * h
    return {} if count == 1 else {"E": (index + 1) % count, "W": (index - 1) % count}


def mesh_2d_no_wrap(index: int, w: int, h: int) -> Neighbours:
    """Row-major grid of `w` columns and `h` rows without links round the ends; north is the row above."""
    row, col = divmod(index, w)
    steps = {"E": (row, col + 1), "W": (row, col - 1), "N": (row - 1, col), "S": (row + 1, col)}
    return {way: r * w + c for way, (r, c) in steps.items() if 0 <= r < h and 0 <= c < w}


def torus_2d(index: int, w: int, h: int) -> Neighbours:
    """The grid with links round the ends of every row and column longer than one."""
    row, col = divmod(index, w)
    across = {"E": row * w + (col + 1) % w, "W": row * w + (col - 1) % w} if w > 1 else {}
    along = {"N": (row - 1) % h * w + col, "S": (row + 1) % h * w + col} if h > 1 else {}
    return across | along


TOPOLOGIES: dict[str, Callable[[int, int, int], Neighbours]] = {
    "ring_1d": ring_1d,
    "torus_2d": torus_2d,
    "mesh_2d": torus_2d,
    "mesh_2d_no_wrap": mesh_2d_no_wrap,
}
