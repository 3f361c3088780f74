"""Neighbour topologies: pure functions from a position to its neighbours by direction.

A message sent to E, W, N or S arrives at the neighbour from the opposite direction. For any other
direction, exactly one direction of the neighbour leads back. Topologies that are not grids number
the `w * h` positions consecutively.
"""

from collections.abc import Callable

Neighbours = dict[str, int]
"""Direction -> index of the neighbour. A direction without a neighbour is absent."""


def ring_1d(index: int, w: int, h: int) -> Neighbours:
    """E to the next position, W to the previous one, with the ends joined; the grid is one row of
    `w * h` positions.
    """
    count = w * h
    return {} if count == 1 else {"E": (index + 1) % count, "W": (index - 1) % count}


def mesh_2d_no_wrap(index: int, w: int, h: int) -> Neighbours:
    """A row-major grid of `w` columns and `h` rows with open ends; N is the row above."""
    row, col = divmod(index, w)
    steps = {"E": (row, col + 1), "W": (row, col - 1), "N": (row - 1, col), "S": (row + 1, col)}
    return {
        direction: r * w + c for direction, (r, c) in steps.items() if 0 <= r < h and 0 <= c < w
    }


def torus_2d(index: int, w: int, h: int) -> Neighbours:
    """The grid with the ends of every row and column joined, where they are longer than one."""
    row, col = divmod(index, w)
    # A dimension of length 1 has no links: a PE is never its own neighbour.
    across = {"E": row * w + (col + 1) % w, "W": row * w + (col - 1) % w} if w > 1 else {}
    along = {"N": (row - 1) % h * w + col, "S": (row + 1) % h * w + col} if h > 1 else {}
    return across | along


def tree_binary(index: int, w: int, h: int) -> Neighbours:
    """A complete binary tree with root 0: the children of `i` are `2 i + 1` and `2 i + 2`."""
    children = {f"child_{side}": 2 * index + 1 + side for side in (0, 1)}
    below = {direction: child for direction, child in children.items() if child < w * h}
    return below if index == 0 else {"parent": (index - 1) // 2} | below


def hypercube(index: int, w: int, h: int) -> Neighbours:
    """`bit_b` to the index that differs in bit b, among the first P = 2^floor(log2(w h)) indices.

    Each index from P on has one neighbour, the index P below it: `fold`.
    """
    count = w * h
    # floor(log2(count)) without floating point.
    dimensions = count.bit_length() - 1
    inside = 1 << dimensions
    if index >= inside:
        return {"fold": index - inside}
    corners = {f"bit_{bit}": index ^ (1 << bit) for bit in range(dimensions)}
    return corners | {"fold": index + inside} if index + inside < count else corners


def fully_connected(index: int, w: int, h: int) -> Neighbours:
    """`rank_<j>` to every other index j."""
    return {f"rank_{peer}": peer for peer in range(w * h) if peer != index}


def none(index: int, w: int, h: int) -> Neighbours:  # noqa: ARG001 - the signature of a topology
    """No neighbours."""
    return {}


TOPOLOGIES: dict[str, Callable[[int, int, int], Neighbours]] = {
    "ring_1d": ring_1d,
    "ring_1d_unidir": ring_1d,
    "torus_2d": torus_2d,
    "mesh_2d": torus_2d,
    "mesh_2d_no_wrap": mesh_2d_no_wrap,
    "tree_binary": tree_binary,
    "hypercube": hypercube,
    # The neighbours on the two lower levels, PEs of a cube and cubes of a SIP, come from the
    # mapper.
    "hierarchical_3level": ring_1d,
    "fully_connected": fully_connected,
    "none": none,
}

RECEIVE_ONLY: dict[str, frozenset[str]] = {"ring_1d_unidir": frozenset({"W"})}
"""Directions of a topology from which PEs only receive; to the opposite directions they only
send.
"""
