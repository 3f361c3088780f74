"""All-reduce over a grid of ranks, dimension by dimension, with all links at work.

A reduce-scatter round one dimension leaves every rank one chunk, an all-reduce round the other
dimension completes that chunk, and an all-gather round the first dimension distributes the chunks
(H. Mikami et al., Massively Distributed SGD: ImageNet/ResNet-50 Training in a Flash, 2018). All
three are the pipeline of `ring_pipeline`.

One PE uses the links of one dimension at a time, in one direction. So PEs divide the links by the
sum of their number and that of their cube: bit 0 selects the dimension that is first, bit 1 the
direction round both rings. While the first dimension of one half of the PEs is busy with their
reduce-scatter, the other half is in the other dimension.

Where the ends of a row are not joined, the message over the closing link of its ring is forwarded
back over all links of the row. They are full duplex, and no other message takes that direction.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.ccl.algorithms.mesh import ALONG_COLUMN, ALONG_ROW, grid_lines
from runtime.ccl.algorithms.ring import queues_of, queues_of_launch
from runtime.ccl.exchange import chunk_bounds
from runtime.ccl.group import Group
from runtime.ccl.pipelines.message_pipeline import RingQueues
from runtime.ccl.pipelines.ring_pipeline import RingPass, pass_round
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer


class Dimension(NamedTuple):
    """One ring of a rank: its position, the number of positions, and the queues."""

    position: int
    size: int
    queues: RingQueues

    def backwards(self) -> "Dimension":
        """The same ring in the opposite direction."""
        queues = self.queues._replace(behind=self.queues.ahead, ahead=self.queues.behind)
        return Dimension(self.size - 1 - self.position, self.size, queues)


def arguments(group: Group, itemsize: int) -> tuple[tuple[Dimension, ...]]:  # noqa: ARG001
    """(the rings of the row and of the column); without rings for a single rank.

    `ValueError` for ranks that have one dimension only.
    """
    if group.world_size == 1:
        return ((),)
    problem = _not_a_grid(group)
    if problem:
        raise ValueError(
            f"algorithm {group.algorithm.name!r} needs ranks in at least two rows and two columns: "
            f"{problem}; the algorithm 'ring' has no such limit"
        )
    return (
        tuple(
            Dimension(line.position, line.size, queues_of(group, *pair))
            for line, pair in zip(grid_lines(group), (ALONG_ROW, ALONG_COLUMN), strict=True)
        ),
    )


def _not_a_grid(group: Group) -> str:
    """Why the ranks of a group have no two dimensions; empty if they do."""
    kind = group.topology.system.sips.topology
    if kind == "ring_1d":
        return f"the SIPs of this machine are a ring (system.sips.topology {kind})"
    w, h = group.grid_w, group.grid_h
    return f"the {group.world_size} ranks of this group are {w} x {h}" if min(w, h) < 2 else ""


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, dimensions: tuple[Dimension, ...]) -> None:
    """Kernel: replace the `numel` elements at `shard` by the combined elements of all ranks.

    On W x H ranks, rows first: 2(W-1)/W n round the row and 2(H-1)/H n/W round the column, in
    2(W-1) + 2(H-1) steps; columns first, with W and H exchanged. Both together are 2(p-1)/p n for
    p = W H ranks: no all-reduce sends less.
    """
    rings = _rings_of_pe(dimensions)
    if not rings:
        return
    outer, inner = rings
    # An average divides once, when the contributions of all ranks are in.
    _pass(outer, shard, numel, op, gathers=False)
    start, stop = chunk_bounds(numel, outer.size)[(outer.position + 1) % outer.size]
    _pass(inner, shard + start, stop - start, op, ranks=outer.size * inner.size)
    _pass(outer, shard, numel, None)


def _rings_of_pe(dimensions: Sequence[Dimension]) -> list[Dimension]:
    """The rings of this PE, in the order of its passes."""
    # The sum divides the PEs of a cube, and PEs of equal numbers in several cubes.
    number = tl.program_id(0) + tl.program_id(1)
    rings = [each._replace(queues=queues_of_launch(each.queues)) for each in dimensions]
    # Half of the PEs begin in the columns while the other half is in the rows : the links of both
    # dimensions are in use at the same time.
    if number & 1:
        rings.reverse()
    return [each.backwards() for each in rings] if number & 2 else rings


def _pass(
    ring: Dimension,
    shard: Pointer,
    numel: int,
    op: ReduceOp | None,
    *,
    gathers: bool = True,
    ranks: int = 1,
) -> None:
    """A pass over the elements of `shard`, in place; the result combines those of `ranks` ranks."""
    bounds = chunk_bounds(numel, ring.size)

    def chunk(index: int) -> Pointer:
        return shard + bounds[index][0]

    sizes = [stop - start for start, stop in bounds]
    pass_round(
        RingPass(
            position=ring.position,
            sizes=sizes,
            source=chunk,
            target=chunk,
            dtype=shard.dtype,
            op=op,
            gathers=gathers,
            contributions=ranks,
        ),
        ring.queues,
    )
