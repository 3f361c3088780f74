"""Kernels of collectives, each with a mistake. As an algorithm it is a ring with two of them."""

from collections.abc import Sequence

from runtime.ccl.algorithms import ring, ring_naive
from runtime.ccl.exchange import PrefetchedMessages, blocks
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value

broadcast = ring.broadcast
ring_naive_all_reduce = ring_naive.all_reduce
ring_gather = ring.gather


def arguments(group: Group, itemsize: int) -> tuple[ring.RingRank, int]:
    return ring.arguments(group, itemsize)


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, line: ring.RingRank, message: int) -> None:
    """The first element of every shard is one too large."""
    ring.all_reduce(shard, numel, op, line, message)
    tl.store(shard, tl.load(shard, 1) + 1)


def reduce(
    shard: Pointer, numel: int, op: ReduceOp, root: int, line: ring.RingRank, message: int
) -> None:
    """Every rank receives the result, and not the root alone."""
    ring.all_reduce(shard, numel, op, line, message)


def all_the_way_round(
    shard: Pointer, numel: int, op: ReduceOp, rank: int, size: int, message: int
) -> None:
    """`ring_naive`, but every contribution returns to its origin, which is useless traffic."""
    ring_naive_all_reduce(shard, numel, op, rank, size, message)
    for _, count in blocks(numel, message):
        with tl.scratch():
            value = tl.load(shard, count)
            tl.send(ring_naive.AHEAD, value)
            tl.recv(ring_naive.BEHIND, count, shard.dtype)


def gathered_twice(
    shard: Pointer,
    numel: int,
    outputs: tuple[Pointer, ...],
    root: int,
    line: ring.RingRank,
    message: int,
) -> None:
    """The gather of the ring, but every part is sent a second time."""
    ring_gather(shard, numel, outputs, root, line, message)
    if line.rank != root:
        ring_gather(shard, numel, outputs, root, line, message)
        return
    for _, count in blocks(numel, message):
        for _ in range(line.size - 1):
            with tl.scratch():
                tl.recv(None, count, shard.dtype)


def without_the_last_child(
    shard: Pointer, count: int, op: ReduceOp, from_children: Sequence[PrefetchedMessages]
) -> Value:
    """`tree`, but the contribution of the last child of a rank is not added."""
    value = tl.load(shard, count)
    for stream in from_children:
        received = stream.take()
        value = received if stream is from_children[-1] else op.combine(value, received)
    return value
