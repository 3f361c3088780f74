"""All-reduce by recursive doubling: in every step, pairs of ranks exchange all they have along one
dimension of a hypercube.

It has the fewest steps of all algorithms and sends the whole message in each of them: it suits
small messages. The schedule is `doubling_partner` of `index_algebra`.
"""

from runtime.ccl.exchange import blocks, exchange
from runtime.ccl.group import Group
from runtime.ccl.index_algebra import doubling_partner
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value

FOLD = "global_fold"


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements per message): a message fits the receive ring, and all its copies
    fit the scratch.

    One copy is loaded. One is received and one combined in each dimension, and for the rank that
    folds onto this one. One may be divided.
    """
    dimensions = group.world_size.bit_length() - 1
    message_bytes = group.ring_bytes_within_scratch(2 * dimensions + 4)
    return group.rank, group.world_size, message_bytes // itemsize


def all_reduce(
    shard: Pointer, numel: int, op: ReduceOp, rank: int, size: int, message: int
) -> None:
    """Kernel: replace the `numel` elements at `shard` by the combined elements of all ranks.

    With P = 2^floor(log2 p), each of the first P ranks sends n bytes in each of log2 P steps. Each
    of the other p - P ranks sends its n bytes to the rank P below it in a step before, and receives
    the result in a step after (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective
    Communication Operations in MPICH, 2005).
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
        # The lower rank's operand comes first on both sides, so that both have the same bits: the
        # maximum of 0.0 and -0.0, and the bits of a NaN, depend on the order of the operands.
        is_lower = rank < doubling_partner(rank, bit)
        value = op.combine(value, other) if is_lower else op.combine(other, value)
    value = op.finish(value, size)
    if folded:
        tl.send(FOLD, value)
    return value
