"""Bytes on the links between SIPs in an all-reduce: the messages of each algorithm and their paths.

There are p ranks with n elements each, and P = 2^floor(log2 p). Each slot of a message causes one
credit in the opposite direction. The algorithms are those of R. Thakur, R. Rabenseifner, W. Gropp,
"Optimization of Collective Communication Operations in MPICH", 2005.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from math import ceil

from kernbench.oracle.theory.alpha_beta import RingQueue
from kernbench.oracle.theory.collectives.rank_orders import sips_by_number
from kernbench.oracle.theory.kernels.kernel_costs import ITEM_BYTES
from kernbench.oracle.theory.paths.sip_grid import SipGrid, SipLink, grid_of

Message = tuple[int, int, int]
"""Source rank, target rank, number of elements; ranks are numbers of the algorithm."""


def link_loads(
    algorithm: str, grid: SipGrid, elements: int, queue: RingQueue
) -> dict[SipLink, int]:
    """Bytes on each link between SIPs, one PE per SIP: messages of at most a ring, and credits."""
    messages, block_bytes = MESSAGES[algorithm]
    block = block_bytes(queue, grid.sips) // ITEM_BYTES
    # Each block has messages of its own, and each message has credits for whole slots.
    loads, sips = dict.fromkeys(grid.links, 0), sips_by_number(algorithm, grid)
    for start in range(0, elements, block):
        for sender, receiver, count in messages(grid.sips, min(block, elements - start)):
            source, target, nbytes = sips[sender], sips[receiver], count * ITEM_BYTES
            for link in pairwise(grid.path(source, target)):
                loads[link] += nbytes
            # The path back may use other links: on a grid, columns come first in each direction.
            for link in pairwise(grid.path(target, source)):
                loads[link] += credits_bytes(nbytes, queue)
    return loads


def credits_bytes(nbytes: int, queue: RingQueue) -> int:
    """Bytes of the credits of a message: one credit per slot."""
    return queue.credit_bytes * ceil(nbytes / queue.slot_bytes)


def ring(sips: int, count: int) -> Iterator[Message]:
    """2(p-1)/p n from each rank to the next one.

    The elements are cut into p chunks, chunk i from i n / p to (i + 1) n / p. In the reduce-scatter
    a rank sends each chunk but one, and in the all-gather each chunk but one. Where p does not
    divide n, it matters which chunk is not sent.
    """
    chunks = _chunks(count, sips)
    for rank in range(sips):
        # Rank r completes chunk r + 1 in the reduce-scatter and does not send it there. Chunk r + 2
        # is the last one that rank r receives in the all-gather, so it is not sent on.
        for kept in ((rank + 1) % sips, (rank + 2) % sips):
            sent = (chunk for index, chunk in enumerate(chunks) if index != kept)
            yield from ((rank, (rank + 1) % sips, chunk) for chunk in sent)


def ring_naive(sips: int, count: int) -> Iterator[Message]:
    """(p-1) n from each rank to the next one."""
    return ((rank, (rank + 1) % sips, count) for rank in range(sips) for _ in range(sips - 1))


def tree(sips: int, count: int) -> Iterator[Message]:
    """N from each rank but 0 to its parent, and n back."""
    for rank in range(1, sips):
        parent = (rank - 1) // 2
        yield from _both(rank, parent, count)


def recursive_doubling(sips: int, count: int) -> Iterator[Message]:
    """N between ranks that differ in one bit, in both directions.

    Each rank from P on sends n to the rank P below it first and receives n from it at the end.
    """
    # A hypercube exists for powers of two only: the other ranks fold onto a corner.
    inside = _largest_power(sips)
    for rank in range(inside):
        yield from ((rank, rank ^ 1 << bit, count) for bit in range(inside.bit_length() - 1))
    for rank in range(inside, sips):
        yield from _both(rank, rank - inside, count)


def halving_doubling(sips: int, count: int) -> Iterator[Message]:
    """N / 2^(b+1) twice between ranks that differ in bit b, in both directions.

    There are P chunks. In the step of bit b of the reduce-scatter, a rank keeps one half of its
    chunks and sends the other half to its partner. In the all-gather it sends what it has then,
    over bit 0 in two messages: what it had before bit 1, and what that has brought. Ranks from P on
    as in recursive doubling; the result goes to them in the messages over bit 0, of both partners.
    """
    inside = _largest_power(sips)
    bits, chunks = inside.bit_length() - 1, _chunks(count, inside)

    def kept(rank: int, halvings: int) -> list[int]:
        """The chunks of a rank after some steps of the reduce-scatter."""
        first = sum((rank >> bit & 1) * (inside >> bit + 1) for bit in range(halvings))
        return list(range(first, first + (inside >> halvings)))

    def elements(indices: list[int]) -> int:
        return sum(chunks[index] for index in indices)

    def gathered(rank: int, bit: int) -> list[int]:
        """Elements of the messages over a bit."""
        if bit or bits == 1:
            return [elements(kept(rank, bit + 1))]
        return [elements(kept(each, 2)) for each in (rank, rank ^ 2)]

    for rank in range(inside):
        # Bit 0 first: the largest halves go between neighbours, over the fewest links.
        for bit in range(bits):
            partner = rank ^ 1 << bit
            yield rank, partner, elements(kept(partner, bit + 1))
            yield from ((rank, partner, part) for part in gathered(rank, bit))
    for rank in range(inside, sips):
        partner = rank - inside
        yield rank, partner, count
        for each in (partner, partner ^ 1):
            yield from ((partner, rank, part) for part in gathered(each, 0))


def mesh(sips: int, count: int) -> Iterator[Message]:
    """W x H ranks send n between neighbours of a row and n/W between neighbours of a column.

    A line of ranks has one chunk per rank. Each chunk goes to its rank from both ends of the line
    and back to both. The columns do the same with the chunk that is the result of the row.
    """
    width, height = grid_of(sips)
    parts = _chunks(count, width)
    for row in range(height):
        yield from _line([row * width + column for column in range(width)], count)
    for column in range(width):
        yield from _line([row * width + column for row in range(height)], parts[column])


def _line(ranks: list[int], count: int) -> Iterator[Message]:
    for chunk in _chunks(count, len(ranks)):
        for rank, other in pairwise(ranks):
            yield from _both(rank, other, chunk)


def _both(rank: int, other: int, count: int) -> Iterator[Message]:
    yield rank, other, count
    yield other, rank, count


def _largest_power(sips: int) -> int:
    """P: the ranks of the hypercube."""
    return 1 << sips.bit_length() - 1


def _chunks(count: int, parts: int) -> list[int]:
    """Number of elements of each chunk."""
    return [(index + 1) * count // parts - index * count // parts for index in range(parts)]


def _message(queue: RingQueue, _: int) -> int:
    """A block is one message."""
    return queue.ring_bytes


def _message_of_each(queue: RingQueue, sips: int) -> int:
    """A block has a message for each rank."""
    return queue.ring_bytes * sips


def _half_ring(queue: RingQueue, _: int) -> int:
    """Blocks that overlap: so small that a turn takes as long as some latencies."""
    return min(queue.ring_bytes // 2, 16 << 10)


def _unlimited(_queue: RingQueue, _sips: int) -> int:
    """A pipeline cuts its messages at whole slots, so its credits are those of one block."""
    return 1 << 40


BlockBytes = Callable[[RingQueue, int], int]

MESSAGES: dict[str, tuple[Callable[[int, int], Iterable[Message]], BlockBytes]] = {
    "ring": (ring, _unlimited),
    "intercube": (ring, _unlimited),
    "hierarchical": (ring, _unlimited),
    "ring_naive": (ring_naive, _message),
    "tree": (tree, _message),
    "recursive_doubling": (recursive_doubling, _message),
    "halving_doubling": (halving_doubling, _half_ring),
    "mesh": (mesh, _message_of_each),
}
"""The messages of one block between p ranks, and the bytes of a full block, by algorithm."""
