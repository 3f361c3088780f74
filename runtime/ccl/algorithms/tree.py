"""All-reduce over a binary tree of ranks: contributions are combined on the way up to rank 0, the result goes down again."""

from runtime.ccl.exchange import PrefetchedMessages, blocks, tree_directions
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements a message): a message fits the receive ring, and all its copies the scratch.

    Two of each child and two of the parent are received or on their way; one is loaded, combined with those of both children,
    and may be divided: 10 copies.
    """
    return group.rank, group.world_size, group.ring_bytes_within_scratch(10) // itemsize


def all_reduce(
    shard: Pointer, numel: int, op: ReduceOp, rank: int, size: int, message: int
) -> None:
    """Kernel: replace the `numel` elements at `shard` by those of all ranks, combined.

    n bytes on each of the p - 1 links in both directions. With h = floor(log2 p) links from rank 0 to the farthest one, M
    messages take M + 2h steps: while one goes down, later ones go up, and in a step a rank sends one message to its parent and
    one to each child (the pipelined binary tree of P. Sanders, J. Speck, J. L. Traff, Two-tree algorithms for full bandwidth
    broadcast, reduction and scan, 2009).
    """
    if size == 1:
        return
    spans = list(blocks(numel, message))
    sizes = [count for _, count in spans]
    parent, children = tree_directions(rank, size, "global_")
    from_children = [PrefetchedMessages(child, sizes, shard.dtype) for child in children]
    if parent is None:
        for start, count in spans:
            with tl.scratch():
                _give(
                    children,
                    op.finish(_combined(shard + start, count, op, from_children), size),
                    shard + start,
                )
        return
    from_parent = PrefetchedMessages(parent, sizes, shard.dtype)
    # A message comes back to a rank when it has been to the root: as many steps later as there are links there and back.
    lag = 2 * ((rank + 1).bit_length() - 1)
    for step in range(len(spans) + lag):
        with tl.scratch():
            if step < len(spans):
                start, count = spans[step]
                tl.send(parent, _combined(shard + start, count, op, from_children))
            if step >= lag:
                _give(children, from_parent.take(), shard + spans[step - lag][0])


def _combined(
    shard: Pointer, count: int, op: ReduceOp, from_children: list[PrefetchedMessages]
) -> Value:
    value = tl.load(shard, count)
    for stream in from_children:
        value = op.combine(value, stream.take())
    return value


def _give(children: list[str], whole: Value, shard: Pointer) -> None:
    for child in children:
        tl.send(child, whole)
    tl.store(shard, whole)
