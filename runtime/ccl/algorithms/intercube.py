"""All-reduce over every cube of every SIP: each cube's shard is a contribution of its own.

PE 0 of every cube takes part. Rows of cubes reduce towards the column of the root cube, that column
towards the root cube, the root cubes exchange between SIPs, and the result returns on the same
links. With the root in the last cube, rows reduce from W to E and columns from N to S.
"""

from typing import NamedTuple

from runtime.ccl.algorithms.mesh import grid_lines
from runtime.ccl.exchange import (
    Directions,
    Line,
    blocks,
    broadcast_from,
    cut,
    reduce_to,
    ring_all_gather,
    ring_reduce_scatter,
)
from runtime.ccl.group import Group
from runtime.ccl.pipelines.message_pipeline import RingQueues
from runtime.ccl.pipelines.tree_pipeline import Contribution, RootRing, TreeNeighbours, through_tree
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value

Mesh = tuple[int, int]
"""Columns and rows of the cubes of a SIP."""

ALONG_E, ALONG_S = ("global_W", "global_E"), ("global_N", "global_S")
SHORT_SLOTS = 4
"""The most slots of a shard that moves as one message, through registers and not through memory."""


class CubeSystem(NamedTuple):
    """The cube mesh, the root cube, the lines of SIPs along E and S, and the queues."""

    mesh: Mesh
    root: int
    lines: tuple[Line, Line]
    queues: RingQueues


def system_of(group: Group, lines: tuple[Line, Line]) -> CubeSystem:
    """The system of a group whose root cubes exchange along `lines`.

    In a pipeline over a tree the scratch holds the messages from up to two PEs, four cubes and two
    SIPs, and the own ones.
    """
    mesh, algorithm = group.topology.sip.cube_mesh, group.algorithm
    queues = RingQueues(
        behind="",
        ahead="",
        n_slots=algorithm.n_slots,
        slot_bytes=algorithm.slot_size,
        room_bytes=group.ring_bytes_within_scratch(9),
        messages=8,
    )
    return CubeSystem((mesh.w, mesh.h), group.root_cube, lines, queues)


def arguments(group: Group, itemsize: int) -> tuple[CubeSystem, int]:
    """(system, elements of a block).

    A block fits one receive ring, and all its copies fit the scratch: on the root cube it is
    loaded, received from four sides and combined each time, in each of two SIP rings received
    twice, combined and concatenated, and may be divided: at most 9 + 2 x 4 + 1 blocks.
    """
    return system_of(group, grid_lines(group)), short_block(group, itemsize)


def short_block(group: Group, itemsize: int) -> int:
    """The most elements that move as one message; 18 copies of them fit the scratch."""
    short_bytes = SHORT_SLOTS * group.algorithm.slot_size
    return min(group.ring_bytes_within_scratch(18), short_bytes) // itemsize


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, system: CubeSystem, block: int) -> None:
    """Kernel: replace the `numel` elements of every cube by the combined contributions of all cubes
    of all ranks.

    A shard of one block takes each step once. A larger one is combined over the cubes, over the
    SIPs and distributed over the cubes at the same time, as a pipeline: n bytes up and n bytes down
    each link between cubes, and 2(p-1)/p n on each link of a ring of p SIPs.
    """
    (w, h), lines = system.mesh, system.lines
    contributions = w * h * lines[0].size * lines[1].size
    if numel > block:
        own = Contribution(shard, numel, op, contributions)
        through_tree(tree_of(system), own, rings_of(system), system.queues)
        return
    for start, count in blocks(numel, block):
        with tl.scratch():
            value = tl.load(shard + start, count)
            value = over_cubes(value, op, system.mesh, system.root, lines, contributions)
            tl.store(shard + start, value)


def tree_of(system: CubeSystem) -> TreeNeighbours:
    """The neighbours of PE 0 of a cube: rows lead to the column of the root, which leads to it.

    Open lines of SIPs continue the tree from root cube to root cube.
    """
    w, h = system.mesh
    row, col = divmod(tl.program_id(1), w)
    root_row, root_col = divmod(system.root, w)
    lines = [(col, root_col, w, ("W", "E")), (row, root_row, h, ("N", "S"))]
    lines += [
        (line.position, 0, line.size, directions)
        for line, directions in zip(system.lines, (ALONG_E, ALONG_S), strict=True)
        if not line.wraps
    ]
    hops = sum(abs(position - root) for position, root, _, _ in lines)
    children = list[str]()
    for line in lines:
        parent, others = _line_neighbours(*line)
        children += others
        if parent is not None:
            return TreeNeighbours(parent, children, hops)
    return TreeNeighbours(None, children, hops)


def rings_of(system: CubeSystem) -> list[RootRing]:
    """The rings of SIPs along which root cubes exchange."""
    return [
        RootRing(line, directions)
        for line, directions in zip(system.lines, (ALONG_E, ALONG_S), strict=True)
        if line.wraps and line.size > 1
    ]


def _line_neighbours(
    position: int, root: int, size: int, directions: Directions
) -> tuple[str | None, list[str]]:
    """(direction to the root, directions from which the elements of others come) on a line."""
    lower, higher = directions
    children = [lower] * (0 < position <= root) + [higher] * (root <= position < size - 1)
    if position == root:
        return None, children
    return higher if position < root else lower, children


def over_cubes(
    value: Value, op: ReduceOp, mesh: Mesh, root: int, lines: tuple[Line, Line], contributions: int
) -> Value:
    """Kernel on PE 0 of every cube: the combined values of all cubes of all ranks; `lines` are
    those along E and S.
    """
    w, h = mesh
    row, col = divmod(tl.program_id(1), w)
    root_row, root_col = divmod(root, w)
    value = reduce_to(value, col, root_col, w, ("W", "E"), op)
    # Only the column of the root cube has the combined elements of whole rows.
    if col == root_col:
        value = reduce_to(value, row, root_row, h, ("N", "S"), op)
        if row == root_row:
            value = _exchange(value, lines[0], ALONG_E, op)
            value = _exchange(value, lines[1], ALONG_S, op)
            # AVG divides once, after all contributions are in: partial averages would round more.
            value = op.finish(value, contributions)
        value = broadcast_from(value, row, root_row, h, ("N", "S"))
    return broadcast_from(value, col, root_col, w, ("W", "E"))


def _exchange(value: Value, line: Line, directions: Directions, op: ReduceOp) -> Value:
    position, size, wraps = line
    if size == 1:
        return value
    # An open line has no link from its end to its begin: a reduce to position 0 and a broadcast
    # from there use each link once in each direction.
    if not wraps:
        value = reduce_to(value, position, 0, size, directions, op)
        return broadcast_from(value, position, 0, size, directions)
    chunks = cut(value, size)
    ring_reduce_scatter(chunks, position, directions, op)
    ring_all_gather(chunks, position, directions)
    return tl.cat(chunks)
