"""The order in which an algorithm numbers the SIPs of its group: neighbours of the algorithm are to
be near each other in the machine.

A neighbour topology connects *positions* 0 to p - 1. Which SIP has which position is free: the
ranks of a program do not change with it. Where SIPs form a ring, a ring in the order of ranks
follows the links. On a grid it does not: the step from the end of a row to the begin of the next
one is forwarded by other SIPs, whose links it shares.

For each neighbour topology, the order of ranks is compared with one that lays it along a closed
tour through the SIPs (`ring_order`). The order with the smaller `order_cost` is taken, that of
ranks if both are equal.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from runtime.ccl.cycles import grid_cycle
from runtime.ccl.topologies import Neighbours, tree_binary
from runtime.model.sip_fabric import SipFabric

Order = tuple[int, ...]
"""The SIPs of a group by position."""

Cost = tuple[int, int, int]

Distances = dict[tuple[int, int], int]
"""Crossings between two SIPs."""

_EXACT = 8
"""The most SIPs of which all tours are compared: 2^7 sets of SIPs, with seven ends each."""
_COMPARED = 64
"""The most SIPs for which orders are compared link by link; more would take seconds."""
_ALONG_TOUR = frozenset({"ring_1d", "ring_1d_unidir", "hierarchical_3level", "tree_binary"})
"""Topologies that are laid along the tour without a comparison, for more SIPs than that."""


def best_order(
    members: Sequence[int],
    fabric: SipFabric,
    kind: str,
    neighbours: Callable[[int, int, int], Neighbours],
    grid: tuple[int, int],
) -> Order:
    """The SIPs `members`, given in the order of ranks, in the order of their positions.

    `kind` is the registry key of the topology `neighbours`, `grid` the columns and rows of its
    positions. A topology of no kind, such as one of a user, keeps the order of ranks, and so do
    those in which all positions are alike.
    """
    ranks = tuple(members)
    laid_along = _LAID_ALONG.get(kind)
    # Two SIPs are neighbours of each other in every order.
    if laid_along is None or len(ranks) < 3:
        return ranks
    steps = [neighbours(position, *grid) for position in range(len(ranks))]
    if _only_neighbours(ranks, fabric, steps):
        return ranks
    if len(ranks) > _COMPARED and kind not in _ALONG_TOUR:
        return ranks
    along = laid_along(ring_order(ranks, fabric), grid)
    if len(ranks) > _COMPARED:
        return along
    return min(ranks, along, key=lambda order: order_cost(order, fabric, steps))


def order_cost(order: Order, fabric: SipFabric, steps: Sequence[Neighbours]) -> Cost:
    """(messages on the busiest link, crossings of the longest route, crossings of all routes).

    `steps` are the neighbours of each position. In an algorithm all positions use one direction at
    once, so the first two are sums over directions of what a step in that direction has.
    """
    load, longest, total = 0, 0, 0
    for direction in sorted({direction for each in steps for direction in each}):
        links, most = Counter[tuple[int, int]](), 0
        for position, each in enumerate(steps):
            if direction in each:
                path = fabric.path(order[position], order[each[direction]])
                links.update(pairwise(path))
                most = max(most, len(path) - 1)
        load += max(links.values(), default=0)
        longest += most
        total += links.total()
    return load, longest, total


def ring_order(members: Sequence[int], fabric: SipFabric) -> Order:
    """A closed tour through SIPs: the shortest one of up to 8, and a Hamiltonian cycle of all SIPs
    of a machine where its links have one.

    Otherwise it is the shorter one of the order of the members and the order in which the cycle of
    the machine visits them, improved by turning parts of it round. Of two equally long tours the
    one whose longest step is shorter: all steps are done at once.
    """
    ranks, chosen = tuple(members), frozenset(members)
    cycle = grid_cycle(fabric.columns, fabric.rows, wraps=fabric.wraps)
    visited = tuple(sip for sip in cycle if sip in chosen)
    if len(ranks) > _COMPARED or len(ranks) < 3:
        return visited
    distances = {
        (one, other): len(fabric.path(one, other)) - 1
        for one in ranks
        for other in ranks
        if one != other
    }
    best = min(ranks, visited, key=lambda tour: _length(tour, distances))
    # A tour of n steps of one crossing each, the longest of which is one: none is shorter.
    if sum(_length(best, distances)) == len(best) + 1:
        return best
    return _shortest(ranks, distances) if len(ranks) <= _EXACT else _improved(best, distances)


def _length(tour: Order, distances: Distances) -> tuple[int, int]:
    steps = [distances[step] for step in zip(tour, tour[1:] + tour[:1], strict=True)]
    return sum(steps), max(steps)


def _shortest(members: Order, distances: Distances) -> Order:
    """The shortest tour (M. Held, R. M. Karp, A dynamic programming approach to sequencing
    problems, 1962).
    """
    first, *others = members
    # Paths from `first`, by the set of the SIPs on them and the last one: (length, longest step,
    # path). A longer path is never a part of a shorter tour.
    paths = {
        (frozenset((other,)), other): (distances[first, other], distances[first, other], (other,))
        for other in others
    }
    for _ in others[1:]:
        longer = dict[tuple[frozenset[int], int], tuple[int, int, Order]]()
        for (visited, last), (length, longest, path) in paths.items():
            for other in others:
                if other in visited:
                    continue
                step = distances[last, other]
                candidate = length + step, max(longest, step), (*path, other)
                key = visited | {other}, other
                longer[key] = min(longer.get(key, candidate), candidate)
        paths = longer
    tours = [(first, *path) for _, _, path in paths.values()]
    return min(tours, key=lambda tour: (_length(tour, distances), tour))


def _improved(tour: Order, distances: Distances) -> Order:
    """The tour with parts turned round as long as that makes it shorter (G. A. Croes, A method for
    solving traveling-salesman problems, 1958).
    """
    best = _length(tour, distances)
    shorter = True
    while shorter:
        shorter = False
        for first in range(1, len(tour) - 1):
            for last in range(first + 1, len(tour)):
                part = tour[first : last + 1][::-1]
                other = tour[:first] + part + tour[last + 1 :]
                length = _length(other, distances)
                if length < best:
                    tour, best, shorter = other, length, True
    return tour


def _only_neighbours(order: Order, fabric: SipFabric, steps: Sequence[Neighbours]) -> bool:
    beside = {sip: frozenset(fabric.neighbours(sip)) for sip in order}
    return all(
        order[peer] in beside[order[position]]
        for position, each in enumerate(steps)
        for peer in each.values()
    )


def _ring(cycle: Order, grid: tuple[int, int]) -> Order:  # noqa: ARG001 - all have one signature
    return cycle


def _grid(cycle: Order, grid: tuple[int, int]) -> Order:
    """Rows along the cycle, every second one in the opposite direction."""
    w, h = grid
    return tuple(
        cycle[row * w + (column if row % 2 == 0 else w - 1 - column)]
        for row in range(h)
        for column in range(w)
    )


def _hypercube(cycle: Order, grid: tuple[int, int]) -> Order:
    """The corners of the hypercube along the cycle in the order of a Gray code (F. Gray, Pulse code
    communication, 1953): two corners in a row differ in one bit. A position outside the hypercube
    follows the corner onto which it folds.
    """
    count = grid[0] * grid[1]
    inside = 1 << (count.bit_length() - 1)
    corners = (number ^ (number >> 1) for number in range(inside))
    positions = [
        position for corner in corners for position in (corner, corner + inside) if position < count
    ]
    return _by_position(positions, cycle)


def _tree(cycle: Order, grid: tuple[int, int]) -> Order:
    """Symmetric order: of each position, those below its first child, it, and the others."""
    count = grid[0] * grid[1]

    def below(position: int) -> Iterator[int]:
        children = tree_binary(position, count, 1)
        if "child_0" in children:
            yield from below(children["child_0"])
        yield position
        if "child_1" in children:
            yield from below(children["child_1"])

    return _by_position(list(below(0)), cycle)


def _by_position(positions: Sequence[int], cycle: Order) -> Order:
    """The SIPs by position, of which `positions` are those of the SIPs of the cycle."""
    sips = dict(zip(positions, cycle, strict=True))
    return tuple(sips[position] for position in range(len(cycle)))


_LAID_ALONG: dict[str, Callable[[Order, tuple[int, int]], Order]] = {
    "ring_1d": _ring,
    "ring_1d_unidir": _ring,
    "hierarchical_3level": _ring,
    "torus_2d": _grid,
    "mesh_2d": _grid,
    "mesh_2d_no_wrap": _grid,
    "tree_binary": _tree,
    "hypercube": _hypercube,
}
"""The order along a tour, from the tour and the columns and rows of the positions."""
