"""All-reduce over a grid of ranks, dimension by dimension, on links between neighbours only.

A reduce-scatter along the row leaves every rank one chunk, an all-reduce along the column completes
that chunk, and an all-gather along the row distributes the chunks. Rows and columns are open lines,
or rings where the grid wraps round. `index_algebra.mesh_position` prints the schedule of four
ranks.
"""

from runtime.ccl.exchange import Line, all_gather_along, blocks, reduce_scatter_along, store_chunks
from runtime.ccl.group import Group
from runtime.ccl.index_algebra import mesh_position
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer

ALONG_ROW, ALONG_COLUMN = ("global_W", "global_E"), ("global_N", "global_S")


def arguments(group: Group, itemsize: int) -> tuple[Line, Line, int]:
    """(line along E, line along S, elements per block).

    A block and all its copies fit the scratch. It is loaded; of its W chunks, W + 1 are received, W
    + 1 combined, and W - 1 received complete. The own chunk is treated likewise along the column,
    without the load; it is divided and concatenated: less than 6 blocks, and on rings less than
    that.

    On rings, where all PEs send before they receive, a chunk of a row must fit the receive ring. On
    open lines, receives are posted before the sends: there the chunks of the columns must fit it.
    """
    along_e, along_s = grid_lines(group)
    chunks = group.grid_w if group.wraps else group.world_size
    return along_e, along_s, chunks * (group.ring_bytes_within_scratch(6 * chunks) // itemsize)


def grid_lines(group: Group) -> tuple[Line, Line]:
    """The row and the column of a rank in the grid of its group."""
    row, column = mesh_position(group.rank, group.grid_w)
    return Line(column, group.grid_w, group.wraps), Line(row, group.grid_h, group.wraps)


def all_reduce(
    shard: Pointer, numel: int, op: ReduceOp, along_e: Line, along_s: Line, block: int
) -> None:
    """Kernel: replace the `numel` elements at `shard` by the combined elements of all ranks.

    On W x H ranks without wrap: n bytes on each link of a row and n/W on each link of a column, in
    both directions, in 2(W-1) + 2(H-1) steps for a block. With wrap: 2(W-1)/W n and 2(H-1)/H n/W,
    in one direction, in as many steps (dimension by dimension as in E. Chan, M. Heimlich, A.
    Purkayastha, R. van de Geijn, Collective communication: theory, practice, and experience, 2007).
    """
    ranks = along_e.size * along_s.size
    if ranks == 1:
        return
    for start, count in blocks(numel, block):
        with tl.scratch():
            value = tl.load(shard + start, count)
            # After the row a rank has 1/W of the elements, and only these move along the column.
            row, mine = reduce_scatter_along(along_e, value, ALONG_ROW, op)
            column, own = reduce_scatter_along(along_s, row[mine], ALONG_COLUMN, op)
            column[own] = op.finish(column[own], ranks)
            all_gather_along(along_s, column, ALONG_COLUMN)
            # The all-gather along the row sends the own chunk as one contiguous value.
            row[mine] = column[0] if len(column) == 1 else tl.cat(column)
            all_gather_along(along_e, row, ALONG_ROW)
            store_chunks(shard + start, row)
