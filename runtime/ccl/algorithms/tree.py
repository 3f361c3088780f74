"""All-reduce over a binary tree of ranks: contributions are combined on the way up to rank 0, and
the result goes down again.

Several messages are in the tree at once; the schedule is `tree_step` of `index_algebra`.
"""

from runtime.ccl.exchange import PrefetchedMessages, blocks, tree_directions
from runtime.ccl.group import Group
from runtime.ccl.index_algebra import tree_step
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements per message): a message fits the receive ring, and all its copies
    fit the scratch.

    Two messages of each child and two of the parent are received or arriving; one is loaded,
    combined with those of both children, and may be divided: 10 copies.
    """
    return group.rank, group.world_size, group.ring_bytes_within_scratch(10) // itemsize


def all_reduce(
    shard: Pointer, numel: int, op: ReduceOp, rank: int, size: int, message: int
) -> None:
    """Kernel: replace the `numel` elements at `shard` by the combined elements of all ranks.

    n bytes on each of the p - 1 links in both directions. With h = floor(log2 p) links from rank 0
    to the farthest one, M messages take M + 2h steps: while one goes down, later ones go up, and in
    a step a rank sends one message to its parent and one to each child (the pipelined binary tree
    of P. Sanders, J. Speck, J. L. Traff, Two-tree algorithms for full bandwidth broadcast,
    reduction and scan, 2009).
    """
    if size == 1 or numel == 0:
        return
    spans = list(blocks(numel, message))
    sizes = [count for _, count in spans]
    parent, children = tree_directions(rank, size, "global_")
    from_children = [PrefetchedMessages(child, sizes, shard.dtype) for child in children]
    if parent is None:
        for start, count in spans:
            with tl.scratch():
                combined = _combined(shard + start, count, op, from_children)
                _distribute(children, op.finish(combined, size), shard + start)
        return
    from_parent = PrefetchedMessages(parent, sizes, shard.dtype)
    step, downwards = 0, None
    while downwards != len(spans) - 1:
        upwards, downwards = tree_step(rank, step, len(spans))
        with tl.scratch():
            if upwards is not None:
                start, count = spans[upwards]
                tl.send(parent, _combined(shard + start, count, op, from_children))
            if downwards is not None:
                _distribute(children, from_parent.take(), shard + spans[downwards][0])
        step += 1


def _combined(
    shard: Pointer, count: int, op: ReduceOp, from_children: list[PrefetchedMessages]
) -> Value:
    value = tl.load(shard, count)
    # The own elements, then child 0, then child 1: the order of arrival does not matter, so the
    # bits of a result are the same in every run.
    for messages in from_children:
        value = op.combine(value, messages.take())
    return value


def _distribute(children: list[str], result: Value, shard: Pointer) -> None:
    # Children first: their copies travel while this rank stores its own.
    for child in children:
        tl.send(child, result)
    tl.store(shard, result)
