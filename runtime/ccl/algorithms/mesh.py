"""All-reduce over a grid of ranks, dimension by dimension, by links between neighbours alone.

Reduce-scatter along the row leaves every rank a part, all-reduce of that part along the column makes it whole, and all-gather
along the row brings the parts together. StridedBlock and columns are open lines, or rings where the grid wraps round.
"""

from runtime.ccl.exchange import Line, all_gather_along, blocks, reduce_scatter_along, store_chunks
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer

ALONG_ROW, ALONG_COLUMN = ("global_W", "global_E"), ("global_N", "global_S")


def arguments(group: Group, itemsize: int) -> tuple[Line, Line, int]:
    """(line along E, line along S, elements a block).

    A block and all its copies fit the scratch. It is loaded; of its W parts, W + 1 are received, W + 1 combined, and W - 1
    received complete. Of the own part it is the same along the column, without the load; it is divided and put together: less
    than 6 blocks, and on rings less than that.

    On rings, where all send before they receive, a part of a row must fit the receive ring. Lines ask before they send: there
    the parts of the columns fit it.
    """
    row, col = divmod(group.rank, group.grid_w)
    along_e, along_s = (col, group.grid_w, group.wraps), (row, group.grid_h, group.wraps)
    parts = group.grid_w if group.wraps else group.world_size
    return along_e, along_s, parts * (group.ring_bytes_within_scratch(6 * parts) // itemsize)


def all_reduce(
    shard: Pointer, numel: int, op: ReduceOp, along_e: Line, along_s: Line, block: int
) -> None:
    """Kernel: replace the `numel` elements at `shard` by those of all ranks, combined.

    On W x H ranks without wrap: n bytes on each link of a row and n/W on each link of a column, in both directions, in
    2(W-1) + 2(H-1) steps for a block. With wrap: 2(W-1)/W n and 2(H-1)/H n/W, in one direction, in as many steps (dimension by
    dimension as in E. Chan, M. Heimlich, A. Purkayastha, R. van de Geijn, Collective communication: theory, practice, and
    experience, 2007).
    """
    ranks = along_e[1] * along_s[1]
    if ranks == 1:
        return
    for start, count in blocks(numel, block):
        with tl.scratch():
            row, mine = reduce_scatter_along(along_e, tl.load(shard + start, count), ALONG_ROW, op)
            column, own = reduce_scatter_along(along_s, row[mine], ALONG_COLUMN, op)
            column[own] = op.finish(column[own], ranks)
            all_gather_along(along_s, column, ALONG_COLUMN)
            row[mine] = column[0] if len(column) == 1 else tl.cat(column)
            all_gather_along(along_e, row, ALONG_ROW)
            store_chunks(shard + start, row)
