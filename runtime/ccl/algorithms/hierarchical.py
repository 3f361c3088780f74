"""All-reduce in three levels: every PE of every cube of every SIP has a contribution of its own.

The PEs of a cube combine their shards over a binary tree with root PE 0. What follows is
`intercube`: the cubes of a SIP are combined over their mesh, root cubes exchange round a ring of
SIPs, and the result returns on the same links.
"""

from runtime.ccl.algorithms.intercube import (
    CubeSystem,
    over_cubes,
    rings_of,
    short_block,
    system_of,
    tree_of,
)
from runtime.ccl.exchange import Line, blocks, received, tree_depth, tree_directions
from runtime.ccl.group import Group
from runtime.ccl.pipelines.tree_pipeline import Contribution, TreeNeighbours, through_tree
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer

SINGLE = Line(0, 1, wraps=True)
"""The second dimension of a ring of SIPs, which has length 1."""


def arguments(group: Group, itemsize: int) -> tuple[CubeSystem, int]:
    """(system, elements of a block).

    A block fits one receive ring, and all its copies fit the scratch: on PE 0 of the root cube it
    is received from two PEs and four cubes, loaded, combined each time, in the ring received twice,
    combined and concatenated, and may be divided: 18 blocks.
    """
    ring = Line(group.rank, group.world_size, wraps=True)
    return system_of(group, (ring, SINGLE)), short_block(group, itemsize)


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, system: CubeSystem, block: int) -> None:
    """Kernel: replace the `numel` elements of every PE by the combined contributions of all PEs of
    all cubes of all ranks.

    For each of k PEs of a cube but one, and for each of c cubes of a SIP but one, n bytes up and n
    bytes down; 2(p-1)/p n bytes on each link of the ring of p SIPs. A block takes 2 floor(log2 k)
    steps between PEs, two for each cube on the longest path along a row and a column to the root
    cube, and 2(p-1) between SIPs. A larger shard goes up, over the SIPs and down at the same time.
    """
    pes = tl.num_programs(0)
    parent, children = tree_directions(tl.program_id(0), pes, "pe_")
    (w, h), lines = system.mesh, system.lines
    contributions = pes * w * h * lines[0].size
    if numel > block:
        above = tree_of(system)
        tree = TreeNeighbours(parent, children, above.hops + tree_depth(tl.program_id(0)))
        if parent is None:
            tree = above._replace(children=[*children, *above.children])
        own = Contribution(shard, numel, op, contributions)
        through_tree(tree, own, rings_of(system), system.queues)
        return
    for start, count in blocks(numel, block):
        with tl.scratch():
            # Posted before the load: the children's messages arrive while the own elements are
            # loaded.
            incoming = [tl.recv_async(child, count, shard.dtype) for child in children]
            value = tl.load(shard + start, count)
            for pending in incoming:
                value = op.combine(value, received(pending))
            if parent is None:
                value = over_cubes(value, op, system.mesh, system.root, lines, contributions)
            else:
                tl.send(parent, value)
                value = tl.recv(parent, count, shard.dtype)
            for child in children:
                tl.send(child, value)
            tl.store(shard + start, value)
