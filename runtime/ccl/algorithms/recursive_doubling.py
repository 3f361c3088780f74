"""All-reduce by recursive doubling: in every step the ranks of a hypercube exchange all they have along one of its dimensions.

It has the fewest steps of all and sends the whole message in each: for small messages.
"""

from runtime.ccl.exchange import blocks, exchange
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value

FOLD = "global_fold"


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements a message): a message fits the receive ring, and all its copies the scratch.

    One is loaded; one is received and combined in each dimension, and from the rank that folds on this one; one may be divided.
    """
    dimensions = group.world_size.bit_length() - 1
    return (
        group.rank,
        group.world_size,
        group.ring_bytes_within_scratch(2 * dimensions + 4) // itemsize,
    )


def all_reduce(
    shard: Pointer, numel: int, op: ReduceOp, rank: int, size: int, message: int
) -> None:
    """Kernel: replace the `numel` elements at `shard` by those of all ranks, combined.

    With P = 2^floor(log2 p), each of the first P ranks sends n bytes in each of log2 P steps. Each of the p - P others gives
    its n bytes to the rank P below it before, one step, and gets the result from there after, another one (R. Thakur,
    R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH, 2005).
    """
    inside = 1 << (size.bit_length() - 1)
    for start, count in blocks(numel, message) if size > 1 else ():
        with tl.scratch():
            value = tl.load(shard + start, count)
            if rank >= inside:
                tl.send(FOLD, value)
                value = tl.recv(FOLD, count, shard.dtype)
            else:
                value = _reduce_inside(value, op, rank, size, inside)
            tl.store(shard + start, value)


def _reduce_inside(value: Value, op: ReduceOp, rank: int, size: int, inside: int) -> Value:
    folded = rank + inside < size
    if folded:
        value = op.combine(value, tl.recv(FOLD, value.shape, value.dtype))
    for bit in range(inside.bit_length() - 1):
        other = exchange(f"global_bit_{bit}", value)
        # The lower rank's comes first on both sides, so that both have the same bits.
        value = op.combine(other, value) if rank >> bit & 1 else op.combine(value, other)
    value = op.finish(value, size)
    if folded:
        tl.send(FOLD, value)
    return value
