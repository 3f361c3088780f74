"""A software pipeline over a tree: contributions are combined on the way up, pass round a ring of
roots, and the result goes down again, all at the same time.

The root combines its own piece with those of its children when the pass round the ring takes the
piece, and sends down at once what the pass completes. Without a ring, a piece that is combined is
complete. So the links of the tree and those of the ring carry bytes at the same time, and each of
them once in each direction, as in the pipelined trees of P. Sanders, J. Speck, J. L. Traff,
Two-tree algorithms for full bandwidth broadcast, reduction and scan, 2009. Messages are used in the
slots of their ring, as in `ring_pipeline`.

All positions of a tree follow the iterations of their root. In iteration i a position sends the
piece that the root uses in its iteration i, and takes the result of iteration i - late:

    root            piece i + pieces of the children -> ring; what it completes -> children, memory
    h hops below    piece i + pieces of the children -> parent
                    result i - late -> children, memory

A position is late by as many iterations a hop as a ring has messages, so that it does not wait for
a result which is still on its way, and goes on sending pieces meanwhile.

Deadlock freedom. Let a ring hold C messages, and let a position be late by d <= C behind its
parent. Let the piece of iteration i have time 2 i, the result and a root's iteration 2 i + 1. At
its time t, a position waits for

1. the pieces of its children: time t or before, one hop farther from the root;
2. room at its parent, which has used piece i - C: a time before t;
3. a result, which its parent has sent d iterations before: a time before t;
4. room at its children, which have released result i - late - C, in their iteration i - C + d:
   time t or before, one hop farther from the root;
5. at the root, other roots: iterations before (`ring_pipeline`).

Every wait is for a time before, or for the same time farther from the root: there is no cycle.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.ccl.exchange import Directions, Line, blocks, chunk_bounds
from runtime.ccl.pipelines.message_pipeline import (
    MessageCut,
    MessagesBehind,
    RingQueues,
    combined_pieces,
)
from runtime.ccl.pipelines.ring_pipeline import RingPass, pass_round
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value


class TreeNeighbours(NamedTuple):
    """The directions to the parent (None at the root) and to the children, and the hops to the
    root.
    """

    parent: str | None
    children: Sequence[str]
    hops: int


class RootRing(NamedTuple):
    """A ring of roots: the line of this root, and the directions along it."""

    line: Line
    directions: Directions


class Contribution(NamedTuple):
    """The `numel` elements at `shard`, to be combined by `op` with those of all `positions`
    of all trees.
    """

    shard: Pointer
    numel: int
    op: ReduceOp
    positions: int


def through_tree(
    tree: TreeNeighbours, own: Contribution, rings: Sequence[RootRing], queues: RingQueues
) -> None:
    """Kernel: replace the own elements by the combined ones of all trees whose roots exchange round
    `rings`, one ring after the other.

    Pieces go up during the pass round the first ring, results down during that round the last one.
    """
    if not rings:
        _take_part(tree, own, None, queues, goes_up=True, comes_down=True)
    for number, ring in enumerate(rings):
        is_first, is_last = number == 0, number == len(rings) - 1
        # An average divides once, at the end.
        partial = own.op if is_last or own.op is not ReduceOp.AVG else ReduceOp.SUM
        around = _pass(own._replace(op=partial), ring)
        if tree.parent is None:
            behind, ahead = ring.directions
            around = around._replace(
                combined_from=tree.children if is_first else (),
                sent_to=tree.children if is_last else (),
            )
            pass_round(around, queues._replace(behind=behind, ahead=ahead))
        else:
            _take_part(tree, own, around, queues, goes_up=is_first, comes_down=is_last)


class _TreePart(NamedTuple):
    """`elements` elements from number `start` on, which move in an iteration of the root: up, down,
    or both.
    """

    start: int
    elements: int
    goes_up: bool = True
    comes_down: bool = True


def _pass(own: Contribution, ring: RootRing) -> RingPass:
    """The pass of a root round a ring, without the tree."""
    bounds = chunk_bounds(own.numel, ring.line.size)

    def chunk(index: int) -> Pointer:
        return own.shard + bounds[index][0]

    return RingPass(
        position=ring.line.position,
        sizes=[stop - start for start, stop in bounds],
        source=chunk,
        target=chunk,
        dtype=own.shard.dtype,
        op=own.op,
        gathers=True,
        contributions=own.positions,
        halves_overlap=True,
    )


def _take_part(
    tree: TreeNeighbours,
    own: Contribution,
    around: RingPass | None,
    queues: RingQueues,
    *,
    goes_up: bool,
    comes_down: bool,
) -> None:
    """Kernel of a position that is in no ring: up and down the tree, in the order of the root."""
    numel, itemsize = own.numel, own.shard.dtype.itemsize
    if around is None:
        cut = MessageCut.of(queues, numel, itemsize)
        parts = [_TreePart(*span) for span in blocks(numel, cut.elements)]
    else:
        cut = MessageCut.of(queues, max(around.sizes), itemsize)
        bounds = chunk_bounds(numel, around.size)
        parts = [
            _TreePart(
                bounds[each.chunk][0] + each.start,
                each.size,
                goes_up=each.uses_own and goes_up,
                comes_down=each.completes and comes_down,
            )
            for each in around.iterations(cut)
        ]
    with tl.scratch():
        _TreeProgram(tree, own, cut, parts, queues).run()


class _TreeProgram:
    """The pipeline of a position that is in no ring, at work."""

    def __init__(
        self,
        tree: TreeNeighbours,
        own: Contribution,
        cut: MessageCut,
        parts: Sequence[_TreePart],
        queues: RingQueues,
    ) -> None:
        self._tree, self._contribution, self._parts = tree, own, parts
        shard, self._late = own.shard, tree.hops * cut.posted
        up = [(shard + each.start, each.elements) for each in parts if each.goes_up]
        # The root completes a part itself.
        down = [each.elements for each in parts if each.comes_down] if tree.parent else []
        below = tree.children if up else ()
        self._own = combined_pieces(cut, up, shard.dtype, own.op, queues, below)
        above = queues._replace(behind=tree.parent or "")
        self._above = MessagesBehind(above, cut, down, shard.dtype)

    def run(self) -> None:
        """Carry out all iterations."""
        parts, late = self._parts, self._late
        for index in range(len(parts) + late):
            if index < len(parts) and parts[index].goes_up:
                self._send_up(parts[index])
            if self._tree.parent and index >= late and parts[index - late].comes_down:
                self._take_down(parts[index - late])
        self._own.finish()
        self._above.finish()

    def _send_up(self, part: _TreePart) -> None:
        value, buffer = self._own.take()
        if self._tree.parent is None:
            own = self._contribution
            value = own.op.finish(value, own.positions, out=value)
            self._own.release(buffer, self._distributed(part, value))
        else:
            self._own.release(buffer, [tl.send_async(self._tree.parent, value)])

    def _take_down(self, part: _TreePart) -> None:
        self._above.begin_iteration()
        message, buffer = self._above.take()
        self._above.hold(message, buffer, self._distributed(part, message))

    def _distributed(self, part: _TreePart, value: Value) -> list[tl.PendingResult]:
        users = [tl.send_async(child, value) for child in self._tree.children]
        users.append(tl.store_async(self._contribution.shard + part.start, value))
        return users
