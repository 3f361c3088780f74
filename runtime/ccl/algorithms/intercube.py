"""All-reduce over every cube of every SIP: each cube's shard is a contribution of its own.

PE 0 of every cube takes part. Rows of cubes reduce towards the column of the root cube, that column
towards the root cube, the root cubes exchange between SIPs, and the result returns on the same
links. With the root in the last cube, rows reduce from W to E and columns from N to S.
"""

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
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value

Mesh = tuple[int, int]
"""Columns and rows of the cubes of a SIP."""

Arguments = tuple[Mesh, int, Line, Line, int]


def arguments(group: Group, itemsize: int) -> Arguments:
    """(cube mesh, root cube, SIP line along E, SIP line along S, elements per block).

    A block fits one receive ring, and all its copies fit the scratch: on the root cube it is
    loaded, received from four sides and combined each time, in each of two SIP rings received
    twice, combined and concatenated, and may be divided: at most 9 + 2 x 4 + 1 blocks.
    """
    mesh = group.topology.sip.cube_mesh
    along_e, along_s = grid_lines(group)
    block = group.ring_bytes_within_scratch(18) // itemsize
    return (mesh.w, mesh.h), group.root_cube, along_e, along_s, block


def all_reduce(  # noqa: PLR0917 - the arguments of a kernel are flat
    shard: Pointer,
    numel: int,
    op: ReduceOp,
    mesh: Mesh,
    root: int,
    along_e: Line,
    along_s: Line,
    block: int,
) -> None:
    """Kernel: replace the `numel` elements of every cube by the combined contributions of all cubes
    of all ranks.
    """
    contributions = mesh[0] * mesh[1] * along_e.size * along_s.size
    for start, count in blocks(numel, block):
        with tl.scratch():
            value = tl.load(shard + start, count)
            value = over_cubes(value, op, mesh, root, (along_e, along_s), contributions)
            tl.store(shard + start, value)


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
    if col == root_col:
        value = reduce_to(value, row, root_row, h, ("N", "S"), op)
        if row == root_row:
            value = _exchange(value, lines[0], ("global_W", "global_E"), op)
            value = _exchange(value, lines[1], ("global_N", "global_S"), op)
            # AVG divides once, after all contributions are in: partial averages would round more.
            value = op.finish(value, contributions)
        value = broadcast_from(value, row, root_row, h, ("N", "S"))
    return broadcast_from(value, col, root_col, w, ("W", "E"))


def _exchange(value: Value, line: Line, directions: Directions, op: ReduceOp) -> Value:
    position, size, wraps = line
    if size == 1:
        return value
    if not wraps:
        value = reduce_to(value, position, 0, size, directions, op)
        return broadcast_from(value, position, 0, size, directions)
    chunks = cut(value, size)
    ring_reduce_scatter(chunks, position, directions, op)
    ring_all_gather(chunks, position, directions)
    return tl.cat(chunks)
