"""All-reduce by recursive halving and doubling (Rabenseifner's algorithm) over a hypercube of
ranks.

Recursive halving is a reduce-scatter: in each step two ranks exchange half of what they have, and
each keeps the half to which both have contributed. Recursive doubling is the all-gather that
follows, with the dimensions in reverse order. The schedules are `halving_steps` and
`doubling_steps` of `index_algebra`. Large halves go to near ranks.
"""

from itertools import pairwise

from runtime.ccl.exchange import blocks, receive_like, received, store_chunks
from runtime.ccl.group import Group
from runtime.ccl.index_algebra import (
    Chunks,
    doubling_partner,
    doubling_steps,
    halved_chunk,
    halving_steps,
)
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value

FOLD = "global_fold"


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements per block): a chunk fits the receive ring, and all copies of a
    block fit the scratch.

    A block is loaded, received from the rank that folds onto this one, and combined. Of what is
    left in each step, together less than one block, one half is received and combined; a chunk may
    be divided: less than 5 copies.
    """
    inside = 1 << (group.world_size.bit_length() - 1)
    chunk = group.ring_bytes_within_scratch(5 * inside) // itemsize
    return group.rank, group.world_size, inside * chunk


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, rank: int, size: int, block: int) -> None:
    """Kernel: replace the `numel` elements at `shard` by the combined elements of all ranks.

    With P = 2^floor(log2 p), each of the first P ranks sends 2(P-1)/P n bytes in 2 log2 P steps.
    Each of the other p - P ranks sends its n bytes to the rank P below it before these steps, and
    receives the result from it after them (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of
    Collective Communication Operations in MPICH, 2005).
    """
    inside = 1 << (size.bit_length() - 1)
    for start, count in blocks(numel, block) if size > 1 else ():
        with tl.scratch():
            # A rank outside the hypercube cuts its block as the rank does onto which it folds.
            cube = _Hypercube(rank % inside, inside, count)
            value = tl.load(shard + start, count)
            if rank >= inside:
                tl.send(FOLD, value)
                parts = cube.split(value, rank - inside, (0, inside))
                for part in parts:
                    tl.recv(FOLD, dst_addr=part)
            else:
                parts = _reduce_inside(value, op, cube, size)
            store_chunks(shard + start, parts)


def _reduce_inside(value: Value, op: ReduceOp, cube: "_Hypercube", size: int) -> list[Value]:
    folded = cube.rank + cube.ranks < size
    if folded:
        value = op.combine(value, tl.recv(FOLD, value.shape, value.dtype))
    # Divided (AVG) before the all-gather: each rank divides its own chunk only.
    own = op.finish(cube.reduce_scatter(value, op), size)
    parts = cube.all_gather(value, own)
    if folded:
        for part in parts:
            tl.send(FOLD, part)
    return parts


class _Hypercube:
    """A rank of a hypercube of `ranks` ranks, with a block of `count` elements that is cut into one
    chunk per rank.
    """

    def __init__(self, rank: int, ranks: int, count: int) -> None:
        self.rank, self.ranks = rank, ranks
        self._edges = [chunk * count // ranks for chunk in range(ranks + 1)]

    def split(self, block: Value, rank: int, chunks: Chunks) -> list[Value]:
        """Views of a range of chunks of a block: those before the chunk of `rank`, that chunk,
        those after it.
        """
        (first, stop), chunk = chunks, halved_chunk(rank, self.ranks)
        edges = [self._edges[at] for at in (first, chunk, chunk + 1, stop)]
        return [block[start:end] for start, end in pairwise(edges)]

    def reduce_scatter(self, value: Value, op: ReduceOp) -> Value:
        """The own chunk, combined over all ranks."""
        for bit, kept_chunks, sent_chunks in halving_steps(self.rank, self.ranks):
            keeps_upper = kept_chunks > sent_chunks
            first, middle = min(kept_chunks, sent_chunks)
            boundary = self._edges[middle] - self._edges[first]
            lower, upper = value[:boundary], value[boundary:]
            kept, sent = (upper, lower) if keeps_upper else (lower, upper)
            # The receive is posted before the send: both ranks send at once, and a half may be
            # larger than a ring, so two sends without receives would wait for each other.
            incoming = receive_like(f"global_bit_{bit}", kept)
            tl.send(f"global_bit_{bit}", sent)
            other = received(incoming)
            # The lower rank's operand comes first, as in recursive doubling: the bits of a result
            # can depend on the order of the operands.
            value = op.combine(other, kept) if keeps_upper else op.combine(kept, other)
        return value

    def all_gather(self, block: Value, own: Value) -> list[Value]:
        """The chunks of all ranks in three parts, of which `own` is the second; the others
        overwrite `block`.
        """
        for bit, sent, incoming in doubling_steps(self.rank, self.ranks):
            direction = f"global_bit_{bit}"
            # The partner's chunk lies in a value of its own, so a range of chunks moves in three
            # parts. Both ranks must cut it in the same way: the receiver with the partner's chunk.
            targets = self.split(block, doubling_partner(self.rank, bit), incoming)
            receives = [tl.recv_async(direction, dst_addr=target) for target in targets]
            before, _, after = self.split(block, self.rank, sent)
            for part in (before, own, after):
                tl.send(direction, part)
            for receive in receives:
                tl.wait(receive)
        before, _, after = self.split(block, self.rank, (0, self.ranks))
        return [before, own, after]
