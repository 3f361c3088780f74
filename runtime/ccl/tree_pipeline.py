"""A software pipeline over a tree: contributions are combined on the way up, and the result goes
down again.

Message j of a position leaves as soon as message j of all its children has arrived and is combined
with the own elements; the way down is a chain to each leaf. With M messages and h links to the
farthest leaf, each way takes M + h steps (P. Sanders, J. Speck, J. L. Traff, Two-tree algorithms
for full bandwidth broadcast, reduction and scan, 2009). Messages are used in the slots of their
ring, as in `ring_pipeline`.

A position waits for its children on the way up and for its parent on the way down, and for room in
the rings of the next positions. The last ones of each way need no room, so no two positions wait
for each other.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.ccl.exchange import blocks
from runtime.ccl.reduction import ReduceOp
from runtime.ccl.ring_pipeline import MessageCut, MessagesBehind, OwnPieces, RingQueues
from runtime.language import tl
from runtime.language.value import Pointer, Value


class TreeNeighbours(NamedTuple):
    """The directions to the parent (None at the root), and to the children."""

    parent: str | None
    children: Sequence[str]


def combine_upwards(
    neighbours: TreeNeighbours, shard: Pointer, numel: int, op: ReduceOp, queues: RingQueues
) -> None:
    """Kernel: combine the elements at `shard` with those of the children, in their order; the root
    stores the result.
    """
    if not neighbours.children and neighbours.parent is None:
        return
    cut = MessageCut.of(queues, numel, shard.dtype.itemsize)
    spans = list(blocks(numel, cut.elements))
    sizes = [count for _, count in spans]
    with tl.scratch():
        below = [
            MessagesBehind(queues._replace(behind=child), cut, sizes, shard.dtype)
            for child in neighbours.children
        ]
        own = OwnPieces(cut, [(shard + start, count) for start, count in spans], shard.dtype)
        for start, _ in spans:
            value, own_buffer = own.take()
            for messages in below:
                message, buffer = messages.take()
                value = op.combine(value, message, out=value)
                messages.release(message, buffer)
            if neighbours.parent is None:
                user = tl.store_async(shard + start, value)
            else:
                user = tl.send_async(neighbours.parent, value)
            own.release(own_buffer, [user])
        own.finish()


def distribute_downwards(
    neighbours: TreeNeighbours,
    shard: Pointer,
    numel: int,
    op: ReduceOp,
    contributions: int,
    queues: RingQueues,
) -> None:
    """Kernel: replace the elements at `shard` by those of the root, which divides an average."""
    if not neighbours.children and neighbours.parent is None and op is not ReduceOp.AVG:
        return
    cut = MessageCut.of(queues, numel, shard.dtype.itemsize)
    spans = list(blocks(numel, cut.elements))
    with tl.scratch():
        if neighbours.parent is None:
            own = OwnPieces(cut, [(shard + start, count) for start, count in spans], shard.dtype)
            for start, _ in spans:
                value, buffer = own.take()
                result = op.finish(value, contributions, out=value)
                users = _sent(neighbours, result)
                if op is ReduceOp.AVG:
                    users.append(tl.store_async(shard + start, result))
                own.release(buffer, users)
            own.finish()
            return
        sizes = [count for _, count in spans]
        above = MessagesBehind(queues._replace(behind=neighbours.parent), cut, sizes, shard.dtype)
        for start, _ in spans:
            above.begin_iteration()
            message, buffer = above.take()
            users = _sent(neighbours, message)
            users.append(tl.store_async(shard + start, message))
            above.hold(message, buffer, users)
        above.finish()


def _sent(neighbours: TreeNeighbours, value: Value) -> list[tl.PendingResult]:
    return [tl.send_async(child, value) for child in neighbours.children]
