"""The tiles that the scheduler of each PE holds in its part of TCM, from the records of a run.

A tile is in its buffer from the start of the operation that writes it (a load, or the store of a
result from the registers) until the end of the last one that reads it (a fetch, or the store to
memory), before the next tile is written there. A tile may be loaded in parts.
"""

from collections.abc import Iterator

import numpy as np

from kernbench.explain.records import Columns
from kernbench.explain.records.columns import Numbers
from kernbench.explain.trace.lanes import level
from runtime.core.run_tables import NONE
from runtime.model.addresses import AddressMap
from runtime.model.allocation import tile_buffer_offset
from runtime.model.topology import Topology


def tile_levels(
    ops: Columns, topology: Topology, sip: int
) -> Iterator[tuple[int, int, Numbers, Numbers]]:
    """Cube, PE, times, and the bytes in the buffers from then on, for each PE with tiles."""
    addresses = AddressMap(topology)
    # One address for each PE, and differences to it for its operations.
    places = np.stack([ops["cube"], ops["pe"]])
    different, of_row = np.unique(places, axis=1, return_inverse=True)
    of_row = of_row.reshape(-1)
    first, end = tile_buffer_offset(topology), topology.tcm_bytes
    for number, (cube, pe) in enumerate(different.T.tolist()):
        if pe == NONE:
            continue
        base = addresses.pe_tcm_addr(sip, cube, pe, 0)
        rows = np.flatnonzero(of_row == number)
        written = ops["address"][rows] - base
        read = ops["read_address"][rows] - base
        writes = rows[(written >= first) & (written < end)]
        reads = rows[(read >= first) & (read < end)]
        if len(writes):
            yield cube, pe, *level(_changes(ops, writes, reads))


def _changes(ops: Columns, writes: Numbers, reads: Numbers) -> list[tuple[Numbers, Numbers]]:
    """The times at which buffers are taken and freed, with their bytes."""
    blocks, of_write = np.unique(ops["address"][writes], return_inverse=True)
    nbytes, begins_ps = ops["nbytes"][writes], ops["start_ps"][writes]
    # One axis of time for all blocks: each has a stretch of it, longer than the run.
    span = 1 + int(ops["end_ps"][np.append(writes, reads)].max())
    order = np.argsort(of_write * span + begins_ps, kind="stable")
    at_write = (of_write * span + begins_ps)[order]
    following = np.append(at_write[1:], len(blocks) * span)
    freed_ps = ops["end_ps"][writes][order]
    if len(reads):
        # The last read of the block that ends before the next write there, if there is one.
        ended = np.sort(_ends_of_reads(ops, reads, blocks, span))
        until = np.minimum(following, (of_write[order] + 1) * span)
        last = ended[np.maximum(np.searchsorted(ended, until, side="right") - 1, 0)]
        freed_ps = np.where(last >= at_write, last - of_write[order] * span, freed_ps)
    return [(begins_ps, nbytes), (freed_ps, -nbytes[order])]


def _ends_of_reads(ops: Columns, reads: Numbers, blocks: Numbers, span: int) -> Numbers:
    """The end of each read in the stretch of each block that it reads."""
    address = ops["read_address"][reads]
    first = np.maximum(np.searchsorted(blocks, address, side="right") - 1, 0)
    behind = np.searchsorted(blocks, address + np.maximum(ops["nbytes"][reads], 1))
    counts = np.maximum(behind - first, 1)
    of_read = np.repeat(np.arange(len(reads)), counts)
    within = np.arange(len(of_read)) - np.repeat(np.cumsum(counts) - counts, counts)
    return (first[of_read] + within) * span + ops["end_ps"][reads[of_read]]
