"""All-reduce by recursive halving and doubling (Rabenseifner's algorithm) over a hypercube of ranks.

Recursive halving is a reduce-scatter: in each step two ranks exchange half of what they have, so that each keeps a half that
both have contributed to. Recursive doubling is the all-gather that goes the same way back. Large halves go to near ranks.
"""

from itertools import pairwise

from runtime.ccl.exchange import blocks, receive_like, received, store_chunks
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value

FOLD = "global_fold"


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements a block): a chunk, the part of one of P ranks, fits the receive ring, all copies the scratch.

    A block is loaded, received from the rank that folds on this one, and combined; of what is left in each step, together less
    than one block, one half is received and combined; a chunk may be divided: less than 5 copies.
    """
    inside = 1 << (group.world_size.bit_length() - 1)
    return (
        group.rank,
        group.world_size,
        inside * (group.ring_bytes_within_scratch(5 * inside) // itemsize),
    )


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, rank: int, size: int, block: int) -> None:
    """Kernel: replace the `numel` elements at `shard` by those of all ranks, combined.

    With P = 2^floor(log2 p), each of the first P ranks sends 2(P-1)/P n bytes in 2 log2 P steps. Each of the p - P others gives
    its n bytes to the rank P below it before, and gets the result from there after (R. Thakur, R. Rabenseifner, W. Gropp,
    Optimization of Collective Communication Operations in MPICH, 2005).
    """
    inside = 1 << (size.bit_length() - 1)
    for start, count in blocks(numel, block) if size > 1 else ():
        with tl.scratch():
            cube = _Hypercube(rank % inside, inside, count)
            value = tl.load(shard + start, count)
            if rank >= inside:
                tl.send(FOLD, value)
                parts = cube.around_chunk_of(rank - inside, value, 0, inside)
                for part in parts:
                    tl.recv(FOLD, dst_addr=part)
            else:
                parts = _reduce_inside(value, op, cube, size)
            store_chunks(shard + start, parts)


def _reduce_inside(value: Value, op: ReduceOp, cube: "_Hypercube", size: int) -> list[Value]:
    folded = cube.rank + cube.ranks < size
    if folded:
        value = op.combine(value, tl.recv(FOLD, value.shape, value.dtype))
    own = op.finish(cube.reduce_scatter(value, op), size)
    parts = cube.all_gather(value, own)
    if folded:
        for part in parts:
            tl.send(FOLD, part)
    return parts


class _Hypercube:
    """A rank of the hypercube of `ranks`, and the block of `count` elements that is cut into a chunk for each of them."""

    def __init__(self, rank: int, ranks: int, count: int) -> None:
        self.rank, self.ranks = rank, ranks
        self._bits = range(ranks.bit_length() - 1)
        self._edges = [chunk * count // ranks for chunk in range(ranks + 1)]

    def chunk_of(self, rank: int) -> int:
        """The chunk that halving leaves to a rank: its bits in reverse, since the lowest one decides on the first half."""
        return sum((rank >> bit & 1) * (self.ranks >> bit + 1) for bit in self._bits)

    def around_chunk_of(self, rank: int, block: Value, first: int, stop: int) -> list[Value]:
        """Chunks `first` to `stop` of a block as views: those before the chunk of a rank, that one, those behind it."""
        chunk = self.chunk_of(rank)
        return [
            block[start:end]
            for start, end in pairwise(self._edges[at] for at in (first, chunk, chunk + 1, stop))
        ]

    def reduce_scatter(self, value: Value, op: ReduceOp) -> Value:
        """The own chunk, combined over all ranks."""
        first, width = 0, self.ranks
        for bit in self._bits:
            width //= 2
            middle = self._edges[first + width] - self._edges[first]
            lower, upper = value[:middle], value[middle:]
            is_upper = bool(self.rank >> bit & 1)
            kept, given = (upper, lower) if is_upper else (lower, upper)
            first += width * is_upper
            # Asked for first, since both sides send, and a half may be larger than a ring.
            incoming = receive_like(f"global_bit_{bit}", kept)
            tl.send(f"global_bit_{bit}", given)
            other = received(incoming)
            value = op.combine(other, kept) if is_upper else op.combine(kept, other)
        return value

    def all_gather(self, block: Value, own: Value) -> list[Value]:
        """The chunks of all ranks, in three parts of which the own chunk is the second; the others are put over `block`."""
        first, width = self.chunk_of(self.rank), 1
        for bit in reversed(self._bits):
            way, beside = f"global_bit_{bit}", first ^ width
            places = self.around_chunk_of(self.rank ^ (1 << bit), block, beside, beside + width)
            incoming = [tl.recv_async(way, dst_addr=place) for place in places]
            before, _, behind = self.around_chunk_of(self.rank, block, first, first + width)
            for part in (before, own, behind):
                tl.send(way, part)
            for pending in incoming:
                tl.wait(pending)
            first, width = min(first, beside), 2 * width
        before, _, behind = self.around_chunk_of(self.rank, block, 0, self.ranks)
        return [before, own, behind]
