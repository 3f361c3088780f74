"""All-reduce by forwarding: every contribution goes once round the ring, and every rank
combines all of them itself.

It needs one direction of the ring and combines nothing on the way: the baseline to which `ring` is
compared.
"""

import functools

from runtime.ccl.exchange import blocks, received
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer

BEHIND, AHEAD = "global_W", "global_E"


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements per message): a message fits the receive ring, and all its copies
    fit the scratch.

    Scratch holds the contributions of all p ranks and p - 1 results of combining two, and one may
    be divided: 2p copies.
    """
    message_bytes = group.ring_bytes_within_scratch(2 * group.world_size)
    return group.rank, group.world_size, message_bytes // itemsize


def all_reduce(
    shard: Pointer, numel: int, op: ReduceOp, rank: int, size: int, message: int
) -> None:
    """Kernel: replace the `numel` elements at `shard` by those of all ranks, combined in the order
    of the ranks.

    (p-1) n bytes on each of p links, in p - 1 steps for a message: p/2 times the bytes of
    reduce-scatter and all-gather.
    """
    if size == 1:
        return
    for start, count in blocks(numel, message):
        with tl.scratch():
            # All receives are posted first, so that no message waits in the ring while the kernel
            # sends another one.
            incoming = [tl.recv_async(BEHIND, count, shard.dtype) for _ in range(size - 1)]
            value = tl.load(shard + start, count)
            contributions = [value] * size
            for step, pending in enumerate(incoming, 1):
                tl.send(AHEAD, value)
                value = received(pending)
                contributions[(rank - step) % size] = value
            # In the order of the ranks, not of the arrivals: floating-point addition is not
            # associative, and all ranks get the same bits.
            tl.store(shard + start, op.finish(functools.reduce(op.combine, contributions), size))
