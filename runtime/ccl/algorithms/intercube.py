"""All-reduce over every cube of every SIP: each cube's shard is a contribution of its own.

PE 0 of every cube takes part. Rows of cubes are summed towards the column of the root cube, that column towards the root
cube, root cubes exchange between SIPs, and the sum goes back the same way. With the root in the last cube rows reduce W to
E and columns N to S.
"""

from runtime.ccl.exchange import broadcast_from, reduce_to, ring_all_reduce
from runtime.ccl.group import Group
from runtime.language import tl
from runtime.language.value import Pointer, Value

Line = tuple[int, int, bool]
"""One dimension of the SIP exchange: position, length, whether its ends are joined."""

Arguments = tuple[int, int, int, Line, Line, int]


def arguments(group: Group, itemsize: int) -> Arguments:
    """(cube columns, cube rows, root cube, SIP line along E, SIP line along S, elements a block).

    A block fits one receive ring, and all its copies the scratch: on the root cube it is loaded, received from four sides and
    summed each time, and in each of two SIP rings received twice, summed and put together: at most 9 + 2 x 4 blocks.
    """
    mesh = group.topology.sip.cube_mesh
    row, col = divmod(group.rank, group.grid_w)
    along_e, along_s = (col, group.grid_w, group.wraps), (row, group.grid_h, group.wraps)
    return mesh.w, mesh.h, group.root_cube, along_e, along_s, group.ring_bytes_within_scratch(17) // itemsize


def all_reduce(  # noqa: PLR0917 - the arguments of a kernel are flat scalars
    shard: Pointer, numel: int, w: int, h: int, root: int, along_e: Line, along_s: Line, block: int
) -> None:
    """Kernel: replace the `numel` elements of every cube by their sum over all cubes of all ranks."""
    row, col = divmod(tl.program_id(1), w)
    root_row, root_col = divmod(root, w)
    for start in range(0, numel, block):
        with tl.scratch():
            value = tl.load(shard + start, min(block, numel - start))
            value = reduce_to(value, col, root_col, w, ("W", "E"))
            if col == root_col:
                value = reduce_to(value, row, root_row, h, ("N", "S"))
                if row == root_row:
                    value = _exchange(value, along_e, ("global_W", "global_E"))
                    value = _exchange(value, along_s, ("global_N", "global_S"))
                value = broadcast_from(value, row, root_row, h, ("N", "S"))
            value = broadcast_from(value, col, root_col, w, ("W", "E"))
            tl.store(shard + start, value)


def _exchange(value: Value, line: Line, ways: tuple[str, str]) -> Value:
    position, length, joined = line
    if length == 1:
        return value
    if not joined:
        return broadcast_from(reduce_to(value, position, 0, length, ways), position, 0, length, ways)
    behind, ahead = ways
    return tl.cat(ring_all_reduce(value, position, length, ahead, behind))
