"""A mesh of routers with FIFO links and unlimited buffers, packet by packet.

Rules: dimension order, columns before rows. The links of a route are from the PE to its router,
between routers, and to the target PE. A packet of F flits holds each of them for F cycles from the
cycle in which its head starts there; heads continue at once (cut-through). A link serves packets in
the order in which their heads arrive. From its start at a link until the arrival at the next one a
head takes the wire, one cycle, and the router, two; at the end it takes the wire only.
"""

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import count, pairwise

WIRE, ROUTER = 1, 2
"""Cycles."""

Generated = tuple[int, int, int]
"""Cycle, source and target of a packet; nodes are numbered row by row."""
Link = tuple[int, int, str]
"""Two routers; or twice the same, and `in` from its PE or `out` to it."""


def latencies(packets: Sequence[Generated], flits: int, side: int) -> list[int]:
    """Cycles from the generation of each packet to the ejection of its tail.

    Heads that arrive together keep the order in which their packets left the links before.
    """
    routes = [route(source, target, side) for _, source, target in packets]
    order, free, taken = count(), dict[Link, int](), [0] * len(packets)
    # (cycle, order, packet, index of the link that its head has reached)
    heads = [(cycle, next(order), index, 0) for index, (cycle, _, _) in enumerate(packets)]
    heapify(heads)
    while heads:
        cycle, _, index, hop = heappop(heads)
        links = routes[index]
        # Lindley again, for each link: service of a packet is one cycle for each of its flits.
        start = max(cycle, free.get(links[hop], 0))
        free[links[hop]] = start + flits
        if hop + 1 == len(links):
            taken[index] = start + WIRE + flits - packets[index][0]
        else:
            heappush(heads, (start + WIRE + ROUTER, next(order), index, hop + 1))
    return taken


def route(source: int, target: int, side: int) -> list[Link]:
    """The links from PE to PE."""
    routers = list(_routers(source, target, side))
    between = [(a, b, "") for a, b in pairwise(routers)]
    return [(source, source, "in"), *between, (target, target, "out")]


def _routers(source: int, target: int, side: int) -> Iterator[int]:
    row, column = divmod(source, side)
    to_row, to_column = divmod(target, side)
    yield source
    while column != to_column:
        column += 1 if to_column > column else -1
        yield row * side + column
    while row != to_row:
        row += 1 if to_row > row else -1
        yield row * side + column
