"""The assignment of rank numbers to SIPs in an all-reduce, on a ring or an open grid of SIPs.

The rule of docs/internals/collective-forms.md, computed here from paths alone. It compares the
order of ranks and the order along a closed tour, first by the messages on the busiest links, then
by the links of the longest paths, then by those of all paths; the smaller number wins, the order of
ranks a draw.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from kernbench.oracle.theory.paths.sip_grid import SipGrid, SipLink, grid_of

Step = list[tuple[int, int]]
"""All messages in one direction, from a number to a number."""


def sips_by_number(algorithm: str, grid: SipGrid) -> list[int]:
    """The SIP of each number of the algorithm."""
    ranks = list(range(grid.sips))
    along, directions = _ALGORITHMS[algorithm]
    steps = directions(grid.sips)
    if all(grid.distance(*message) == 1 for step in steps for message in step):
        return ranks
    orders = [ranks, along(closed_tour(grid))]
    return min(orders, key=lambda order: _cost(grid, order, steps))


def closed_tour(grid: SipGrid) -> list[int]:
    """All SIPs in the order of a closed tour of their links.

    On an open grid with an even number of rows: along the first row, then back and forth through
    all other columns of the other rows, and up the first column; rows and columns exchanged where
    only the number of columns is even.
    """
    if grid.wraps:
        assert grid.rows == 1, "the tour of a ring"
        return list(range(grid.sips))
    if grid.rows % 2:
        assert grid.columns % 2 == 0, "an open grid of two odd sides has no tour of its links"
        turned = closed_tour(SipGrid(grid.rows, grid.columns, wraps=False))
        return [each % grid.rows * grid.columns + each // grid.rows for each in turned]
    columns = range(grid.columns)
    tour = list(columns)
    for row in range(1, grid.rows):
        inner = columns[:0:-1] if row % 2 else columns[1:]
        tour += [row * grid.columns + column for column in inner]
    return tour + [row * grid.columns for row in range(grid.rows - 1, 0, -1)]


def _cost(grid: SipGrid, order: list[int], steps: list[Step]) -> tuple[int, int, int]:
    busiest = longest = total = 0
    for step in steps:
        paths = [grid.path(order[source], order[target]) for source, target in step]
        links = Counter[SipLink](link for path in paths for link in pairwise(path))
        busiest += max(links.values(), default=0)
        longest += max((len(path) - 1 for path in paths), default=0)
        total += sum(links.values())
    return busiest, longest, total


def _along_ring(tour: list[int]) -> list[int]:
    return tour


def _along_rows(tour: list[int]) -> list[int]:
    # The tour turns at the end of each row, so neighbours in the first or last column follow one
    # another on it.
    width, height = grid_of(len(tour))
    rows = [tour[row * width : (row + 1) * width] for row in range(height)]
    return [sip for index, row in enumerate(rows) for sip in (row[::-1] if index % 2 else row)]


def _along_gray_code(tour: list[int]) -> list[int]:
    """Corners along the reflected binary code; behind each of them what folds onto it."""
    # Neighbours in the reflected code differ in one bit (F. Gray, US patent 2632058, 1953), so SIPs
    # that follow one another on the tour are partners in a step.
    inside, code = 1 << len(tour).bit_length() - 1, [0]
    while len(code) < inside:
        code += [len(code) | each for each in reversed(code)]
    numbers = [each for corner in code for each in (corner, corner + inside) if each < len(tour)]
    return [tour[numbers.index(number)] for number in range(len(tour))]


def _along_branches(tour: list[int]) -> list[int]:
    """SIPs by number: the in-order traversal of the tree of numbers follows the tour."""

    def numbers(number: int) -> Iterator[int]:
        if number < len(tour):
            yield from numbers(2 * number + 1)
            yield number
            yield from numbers(2 * number + 2)

    in_order = list(numbers(0))
    return [tour[in_order.index(number)] for number in range(len(tour))]


def _ring(sips: int) -> list[Step]:
    ahead = [(number, (number + 1) % sips) for number in range(sips)]
    return _both_ways(ahead)


def _tree(sips: int) -> list[Step]:
    children = [[(number, 2 * number + child) for number in range(sips)] for child in (1, 2)]
    inside = [[each for each in step if each[1] < sips] for step in children]
    # All messages to parents are one direction, those to first and second children two.
    up = [(child, number) for step in inside for number, child in step]
    return [*inside, up]


def _hypercube(sips: int) -> list[Step]:
    inside = 1 << sips.bit_length() - 1
    bits = [
        [(number, number ^ 1 << bit) for number in range(inside)]
        for bit in range(inside.bit_length() - 1)
    ]
    folds = [(number, number - inside) for number in range(inside, sips)]
    return [*bits, folds + [(corner, number) for number, corner in folds]]


def _mesh(sips: int) -> list[Step]:
    width, _ = grid_of(sips)
    across = [(number, number + 1) for number in range(sips) if (number + 1) % width]
    along = [(number, number + width) for number in range(sips - width)]
    return [*_both_ways(across), *_both_ways(along)]


def _both_ways(step: Step) -> list[Step]:
    return [step, [(target, source) for source, target in step]]


_Along = Callable[[list[int]], list[int]]
_ALGORITHMS: dict[str, tuple[_Along, Callable[[int], list[Step]]]] = {
    "ring": (_along_ring, _ring),
    "intercube": (_along_ring, _ring),
    "hierarchical": (_along_ring, _ring),
    "ring_naive": (_along_ring, _ring),
    "tree": (_along_branches, _tree),
    "recursive_doubling": (_along_gray_code, _hypercube),
    "halving_doubling": (_along_gray_code, _hypercube),
    "mesh": (_along_rows, _mesh),
}
"""The order along a tour, and the messages of each direction, by algorithm."""
