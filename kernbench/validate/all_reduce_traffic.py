"""What the links between SIPs must carry in an all-reduce: the messages of each algorithm by its formula, and their ways.

p ranks, n bytes at each of them, P = 2^floor(log2 p). Every slot of a message has a credit, on the way back.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, permutations
from math import ceil, isqrt

from kernbench.validate.all_reduce_runs import CREDIT_BYTES, ITEM_BYTES, Link, Queues
from kernbench.validate.variant import Variant

Message = tuple[int, int, int]
"""From a rank, to a rank, elements."""


class SipGrid:
    """The ways between SIPs: the columns before the rows; round a ring the shorter way, and up where both are as long."""

    def __init__(self, columns: int, rows: int = 1, *, wraps: bool = True) -> None:
        self._columns, self._rows, self._wraps = columns, rows, wraps
        self.sips = columns * rows

    @classmethod
    def of(cls, file: Variant) -> "SipGrid":
        """Of a file with a ring of SIPs, or with a grid without wrap whose sides it gives."""
        sips = file["system.sips"]
        return (
            cls(sips["count"])
            if sips["topology"] == "ring_1d"
            else cls(sips["w"], sips["h"], wraps=False)
        )

    @property
    def links(self) -> list[Link]:
        """Both directions between neighbours."""
        return [pair for pair in self._pairs() if self.distance(*pair) == 1]

    @property
    def diameter(self) -> int:
        """The largest distance."""
        return max((self.distance(*pair) for pair in self._pairs()), default=0)

    @property
    def most_neighbours(self) -> int:
        """Links that leave the SIP that has most of them."""
        leaving = [source for source, _ in self.links]
        return max(map(leaving.count, leaving), default=0)

    def distance(self, source: int, target: int) -> int:
        """Links from SIP to SIP."""
        return len(self.path(source, target)) - 1

    def path(self, source: int, target: int) -> list[int]:
        """The SIPs on the way, both ends included."""
        (row, column), (to_row, to_column) = (
            divmod(source, self._columns),
            divmod(target, self._columns),
        )
        across = [
            row * self._columns + each for each in self._walk(column, to_column, self._columns)
        ]
        return across + [
            each * self._columns + to_column for each in self._walk(row, to_row, self._rows)[1:]
        ]

    def _pairs(self) -> list[Link]:
        return list(permutations(range(self.sips), 2))

    def _walk(self, start: int, end: int, size: int) -> list[int]:
        up = (end - start) % size
        if not self._wraps:
            return list(range(start, end + 1)) if end >= start else list(range(start, end - 1, -1))
        return [
            (start + step) % size
            for step in (range(up + 1) if 2 * up <= size else range(0, up - size - 1, -1))
        ]


def link_loads(algorithm: str, grid: SipGrid, elements: int, queues: Queues) -> dict[Link, int]:
    """Bytes on each link between SIPs for one PE a SIP: messages of at most a ring, and credits."""
    messages, parts = MESSAGES[algorithm]
    block = queues.ring_bytes // ITEM_BYTES * parts(grid.sips)
    loads = dict.fromkeys(grid.links, 0)
    for start in range(0, elements, block):
        for source, target, count in messages(grid.sips, min(block, elements - start)):
            nbytes = count * ITEM_BYTES
            for link in pairwise(grid.path(source, target)):
                loads[link] += nbytes
            for link in pairwise(grid.path(target, source)):
                loads[link] += CREDIT_BYTES * ceil(nbytes / queues.slot_bytes)
    return loads


def line_load(nbytes: int, queues: Queues) -> int:
    """Bytes on a link of a line that passes n bytes on in one direction and the result back in the other: n and credits."""
    return nbytes + CREDIT_BYTES * ceil(nbytes / queues.slot_bytes)


def ring(sips: int, count: int) -> Iterator[Message]:
    """2(p-1)/p n from each rank to the next one.

    The elements are cut into p chunks i, from i n / p to (i + 1) n / p. A rank sends every chunk but one while sums are made,
    and every chunk but one while they are passed round; where p does not divide n, it matters which.
    """
    chunks = _chunks(count, sips)
    for rank in range(sips):
        # Chunk r + 1 is whole on rank r and is not sent before; chunk r + 2 is the last one to come and stays.
        for stays in ((rank + 1) % sips, (rank + 2) % sips):
            yield from (
                (rank, (rank + 1) % sips, chunk)
                for index, chunk in enumerate(chunks)
                if index != stays
            )


def ring_naive(sips: int, count: int) -> Iterator[Message]:
    """(p-1) n from each rank to the next one."""
    return ((rank, (rank + 1) % sips, count) for rank in range(sips) for _ in range(sips - 1))


def tree(sips: int, count: int) -> Iterator[Message]:
    """From each rank but 0 to its parent n, and n back."""
    for rank in range(1, sips):
        parent = (rank - 1) // 2
        yield from _both(rank, parent, count)


def recursive_doubling(sips: int, count: int) -> Iterator[Message]:
    """Between ranks that differ in one bit n, each way; from each rank beyond P to the one P below n, and n back."""
    inside = _inside(sips)
    for rank in range(inside):
        yield from ((rank, rank ^ 1 << bit, count) for bit in range(inside.bit_length() - 1))
    for rank in range(inside, sips):
        yield from _both(rank, rank - inside, count)


def halving_doubling(sips: int, count: int) -> Iterator[Message]:
    """Between ranks that differ in bit b twice n / 2^(b+1), each way; beyond P as in recursive doubling.

    There are P chunks. In the step of bit b, a rank keeps one half of those that it has, and its partner gets the other. What
    is whole goes back in up to three messages: the own chunk stands apart from those before and behind it.
    """
    inside = _inside(sips)
    chunks = _chunks(count, inside)

    def kept(rank: int, halvings: int) -> range:
        first = sum((rank >> bit & 1) * (inside >> bit + 1) for bit in range(halvings))
        return range(first, first + (inside >> halvings))

    def around_own(rank: int, there: range) -> list[int]:
        own = kept(rank, inside.bit_length() - 1)[0]
        parts = (range(there.start, own), range(own, own + 1), range(own + 1, there.stop))
        return [sum(chunks[index] for index in part) for part in parts]

    for rank in range(inside):
        for bit in range(inside.bit_length() - 1):
            partner = rank ^ 1 << bit
            yield rank, partner, sum(chunks[index] for index in kept(partner, bit + 1))
            yield from ((rank, partner, part) for part in around_own(rank, kept(rank, bit + 1)))
    for rank in range(inside, sips):
        yield rank, rank - inside, count
        yield from (
            (rank - inside, rank, part) for part in around_own(rank - inside, range(inside))
        )


def mesh(sips: int, count: int) -> Iterator[Message]:
    """On W x H ranks n between neighbours of a row and n/W between those of a column, each way.

    A line of ranks has a chunk for each of them, which goes to its rank from both ends, and then back to both. Columns do that
    with their part of the rows.
    """
    width, height = grid_of(sips)
    parts = _chunks(count, width)
    for row in range(height):
        yield from _line([row * width + column for column in range(width)], count)
    for column in range(width):
        yield from _line([row * width + column for row in range(height)], parts[column])


def grid_of(sips: int) -> tuple[int, int]:
    """Columns and rows of the most square grid that is not higher than wide."""
    height = next(rows for rows in range(isqrt(sips), 0, -1) if sips % rows == 0)
    return sips // height, height


def _line(ranks: list[int], count: int) -> Iterator[Message]:
    for chunk in _chunks(count, len(ranks)):
        for rank, other in pairwise(ranks):
            yield from _both(rank, other, chunk)


def _both(rank: int, other: int, count: int) -> Iterator[Message]:
    yield rank, other, count
    yield other, rank, count


def _inside(sips: int) -> int:
    """The ranks of the hypercube: a power of two."""
    return 1 << sips.bit_length() - 1


def _chunks(count: int, parts: int) -> list[int]:
    """The elements of each part."""
    return [(index + 1) * count // parts - index * count // parts for index in range(parts)]


def _one(_: int) -> int:
    return 1


def _all(sips: int) -> int:
    return sips


MESSAGES: dict[str, tuple[Callable[[int, int], Iterable[Message]], Callable[[int], int]]] = {
    "ring": (ring, _all),
    "intercube": (ring, _one),
    "hierarchical": (ring, _one),
    "ring_naive": (ring_naive, _one),
    "tree": (tree, _one),
    "recursive_doubling": (recursive_doubling, _one),
    "halving_doubling": (halving_doubling, _inside),
    "mesh": (mesh, _all),
}
"""By algorithm the messages of a block between the PEs of p ranks that meet, and into how many a block is cut that is full."""
