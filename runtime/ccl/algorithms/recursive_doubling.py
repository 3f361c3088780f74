"""Collectives over a hypercube of ranks, in log2 p steps: all-reduce and all-gather by recursive
doubling, reduce-scatter by recursive halving, broadcast and reduce over binomial trees.

They have the fewest steps of all algorithms and suit small messages: a chain or a ring takes p - 1
steps. The schedules are `doubling_partner` of `index_algebra` and the trees of `HypercubeRank`
(R. Thakur, R. Rabenseifner, W. Gropp, Optimization of Collective Communication Operations in MPICH,
2005).

No two ranks wait for each other. In a tree every rank receives before it sends, so that each wait
leads one step nearer to the root, which waits for no other rank. In an exchange both ranks post all
receives of a step before they send.
"""

from runtime.ccl.exchange import blocks, exchange, received
from runtime.ccl.group import Group
from runtime.ccl.hypercube import FOLD, HypercubeRank
from runtime.ccl.index_algebra import doubling_partner
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements per message): a message fits the receive ring, and all its copies
    fit the scratch.

    In an all-reduce one copy is loaded. One is received and one combined in each dimension, and for
    the rank that folds onto this one. One may be divided.
    """
    message_bytes = group.ring_bytes_within_scratch(_copies(group.world_size))
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
    own = HypercubeRank(rank, size)
    for start, count in blocks(numel, message) if size > 1 else ():
        with tl.scratch():
            value = tl.load(shard + start, count)
            if own.is_corner:
                value = _reduce_at_corner(value, op, own)
            else:
                tl.send(FOLD, value)
                value = tl.recv(FOLD, count, shard.dtype)
            tl.store(shard + start, value)


def broadcast(shard: Pointer, numel: int, root: int, rank: int, size: int, message: int) -> None:
    """Kernel: replace the elements at `shard` by those of rank `root`.

    A binomial tree: n bytes to every rank once, log2 P steps, and one each before and behind them
    for ranks that fold.
    """
    own = HypercubeRank(rank, size)
    for start, count in blocks(numel, message) if size > 1 else ():
        with tl.scratch():
            source = own.source(root)
            value = (
                tl.load(shard + start, count)
                if source is None
                else tl.recv(source, count, shard.dtype)
            )
            # The largest subtree first: its ranks have the most steps still to take.
            for target in own.targets(root):
                tl.send(target, value)
            if source is not None:
                tl.store(shard + start, value)


def reduce(  # noqa: PLR0917 - the arguments of a kernel are flat
    shard: Pointer, numel: int, op: ReduceOp, root: int, rank: int, size: int, message: int
) -> None:
    """Kernel: replace the elements at `shard` of rank `root` by the combined elements of all ranks;
    other ranks keep theirs.

    The tree of `broadcast` in the opposite direction: n bytes from every rank once.
    """
    own = HypercubeRank(rank, size)
    for start, count in blocks(numel, message):
        with tl.scratch():
            value = tl.load(shard + start, count)
            # Those that come last in a broadcast come first, each when its own tree is complete.
            for source in reversed(own.targets(root)):
                value = op.combine(value, tl.recv(source, count, shard.dtype))
            target = own.source(root)
            if target is None:
                tl.store(shard + start, op.finish(value, size))
            else:
                tl.send(target, value)


def all_gather(
    shard: Pointer, numel: int, outputs: tuple[Pointer, ...], rank: int, size: int, message: int
) -> None:
    """Kernel: write the `numel` elements at `shard` of every rank r to `outputs[r]`.

    Recursive doubling: in step b two corners that differ in bit b exchange all that they have,
    (P-1) parts in log2 P steps. A rank that folds sends its part before, and receives all others
    behind them.
    """
    own = HypercubeRank(rank, size)
    for start, count in blocks(numel, _part(size, message)):
        with tl.scratch():
            value = tl.load(shard + start, count)
            if own.is_corner:
                # Stored behind the last step, for which other ranks may wait.
                for source, part in _gathered_at_corner(value, own).items():
                    tl.store(outputs[source] + start, part)
                continue
            # Straight from the ring to memory, which nothing uses before the end of the kernel.
            for each in own.all_ranks:
                if each != rank:
                    tl.recv_async(FOLD, count, dst_addr=outputs[each] + start)
            tl.send(FOLD, value)
            tl.store(outputs[rank] + start, value)


def all_gather_into_tensor(
    shard: Pointer, numel: int, outputs: tuple[Pointer, ...], rank: int, size: int, message: int
) -> None:
    """Kernel: write the `numel` elements at `shard` of every rank r to `outputs[r]`, in one
    tensor.
    """
    all_gather(shard, numel, outputs, rank, size, message)


def reduce_scatter_tensor(  # noqa: PLR0917 - the arguments of a kernel are flat
    inputs: tuple[Pointer, ...],
    numel: int,
    op: ReduceOp,
    output: Pointer,
    rank: int,
    size: int,
    message: int,
) -> None:
    """Kernel: combine the `numel` elements at `inputs[r]` over all ranks, and write them to
    `output` of rank r.

    Recursive halving: in the step of bit b, from the highest bit on, two corners exchange the parts
    which the other one needs, (P-1) parts in log2 P steps. A rank that folds sends all its parts
    before, and receives its own behind them.
    """
    own = HypercubeRank(rank, size)
    for start, count in blocks(numel, _part(size, message)):
        with tl.scratch():
            if own.is_corner:
                parts = _scatter_at_corner(inputs, start, count, op, own)
                tl.store(output + start, op.finish(parts[own.rank], size))
                if own.folded is not None:
                    tl.send(FOLD, op.finish(parts[own.folded], size))
            else:
                incoming = tl.recv_async(FOLD, count, output.dtype)
                for each in own.all_ranks:
                    tl.send(FOLD, tl.load(inputs[each] + start, count))
                tl.store(output + start, received(incoming))


def _copies(size: int) -> int:
    """The copies of a message that fit the scratch."""
    return 2 * (size.bit_length() - 1) + 4


def _part(size: int, message: int) -> int:
    """The elements of a part, of which 5 p + 2 copies fit the scratch.

    A reduce-scatter has most: p parts are loaded, p received and combined where a rank folds, and
    fewer than p are received and combined in all steps.
    """
    return max(message * _copies(size) // (5 * size + 2), 1)


def _reduce_at_corner(value: Value, op: ReduceOp, own: HypercubeRank) -> Value:
    if own.folded is not None:
        value = op.combine(value, tl.recv(FOLD, value.shape, value.dtype))
    for bit in own.bits:
        other = exchange(f"global_bit_{bit}", value)
        # The lower rank's operand comes first on both sides, so that both have the same bits: the
        # maximum of 0.0 and -0.0, and the bits of a NaN, depend on the order of the operands.
        is_lower = own.rank < doubling_partner(own.rank, bit)
        value = op.combine(value, other) if is_lower else op.combine(other, value)
    value = op.finish(value, own.size)
    if own.folded is not None:
        tl.send(FOLD, value)
    return value


def _gathered_at_corner(value: Value, own: HypercubeRank) -> dict[int, Value]:
    """The parts of all ranks."""
    parts = {own.rank: value}
    if own.folded is not None:
        parts[own.folded] = tl.recv(FOLD, value.shape, value.dtype)
    for bit in own.bits:
        direction = f"global_bit_{bit}"
        mine, others = (
            own.ranks_at(own.corners_like(corner, bit))
            for corner in (own.rank, own.rank ^ 1 << bit)
        )
        # Posted before the sends: no rank waits in a send while its partner, whose ring is full,
        # waits for it in another send.
        incoming = {each: tl.recv_async(direction, value.shape, value.dtype) for each in others}
        for each in mine:
            tl.send(direction, parts[each])
        parts |= {each: received(pending) for each, pending in incoming.items()}
    if own.folded is not None:
        for each in own.all_ranks:
            if each != own.folded:
                tl.send(FOLD, parts[each])
    return parts


def _scatter_at_corner(
    inputs: tuple[Pointer, ...], start: int, count: int, op: ReduceOp, own: HypercubeRank
) -> dict[int, Value]:
    """The parts of this corner and of the rank that folds onto it, combined over all ranks."""
    parts = {rank: tl.load(inputs[rank] + start, count) for rank in own.all_ranks}
    if own.folded is not None:
        for rank, part in tuple(parts.items()):
            parts[rank] = op.combine(part, tl.recv(FOLD, count, part.dtype))
    # From the highest bit on, each step exchanges half of the parts that are left: P/2, P/4, ...,
    # 1.
    for bit in reversed(own.bits):
        direction = f"global_bit_{bit}"
        kept, sent = (
            own.ranks_at(own.corners_like(corner, bit))
            for corner in (own.rank, own.rank ^ 1 << bit)
        )
        incoming = {rank: tl.recv_async(direction, count, parts[rank].dtype) for rank in kept}
        for rank in sent:
            tl.send(direction, parts[rank])
        for rank, pending in incoming.items():
            parts[rank] = op.combine(parts[rank], received(pending))
    return parts
