"""All-reduce over a ring of SIPs: every shard of the tensor goes round a ring of its own, from PE to the same PE elsewhere."""

from runtime.ccl.exchange import chunk_bounds, ring_all_reduce
from runtime.ccl.group import Group
from runtime.language import tl
from runtime.language.value import Pointer

Arguments = tuple[int, int, int]


def arguments(group: Group, itemsize: int) -> Arguments:
    """(rank, world size, elements a block): a chunk of a block fits the receive ring, and all its copies the scratch.

    A block of n chunks is loaded whole; n - 1 chunks are received and summed, n - 1 are received complete: 4n - 3 chunks.
    """
    world_size = group.world_size
    chunk_bytes = group.ring_bytes_within_scratch(4 * world_size - 3)
    return group.rank, world_size, chunk_bytes // itemsize * world_size


def all_reduce(shard: Pointer, numel: int, rank: int, world_size: int, block: int) -> None:
    """Kernel: replace the `numel` elements at `shard` by their sum over all ranks."""
    if world_size == 1:
        return
    for start in range(0, numel, block):
        with tl.scratch():
            count = min(block, numel - start)
            value = tl.load(shard + start, count)
            chunks = ring_all_reduce(value, rank, world_size, "global_E", "global_W")
            for (begin, end), chunk in zip(chunk_bounds(count, world_size), chunks, strict=True):
                if end > begin:
                    tl.store(shard + start + begin, chunk)
