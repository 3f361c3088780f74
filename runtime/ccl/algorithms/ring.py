"""Collectives over a ring of SIPs: every shard goes round a ring of its own, from PE to the same PE elsewhere.

Everything travels from a rank to the next one, but for all-to-all, which uses both directions. The traffic that a kernel
states is what crosses each link of a ring of p ranks, with n bytes at `shard`; over all links no algorithm has less.
"""

from runtime.ccl.exchange import (
    blocks,
    chunk_bounds,
    cut,
    received,
    ring_all_gather,
    ring_reduce_scatter,
)
from runtime.ccl.group import Group
from runtime.ccl.reduction import ReduceOp
from runtime.language import tl
from runtime.language.value import Pointer, Value

Line = tuple[int, int]
"""Rank and world size."""

BEHIND, AHEAD = WAYS = ("global_W", "global_E")


def arguments(group: Group, itemsize: int) -> tuple[Line, int]:
    """((rank, world size), elements a message): a message fits the receive ring, and all its copies the scratch.

    All-reduce has most of them at once: a block of p messages is loaded whole; p - 1 are received and combined, one may be
    divided, and p - 1 are received complete: 4p - 2.
    """
    message_bytes = group.ring_bytes_within_scratch(4 * group.world_size - 2)
    return (group.rank, group.world_size), message_bytes // itemsize


def all_reduce(shard: Pointer, numel: int, op: ReduceOp, line: Line, message: int) -> None:
    """Kernel: replace the `numel` elements at `shard` by those of all ranks, combined.

    Reduce-scatter, then all-gather: 2(p-1)/p n bytes a link, in 2(p-1) steps for a block of p messages.
    """
    rank, size = line
    if size == 1:
        return
    for start, count in blocks(numel, message * size):
        with tl.scratch():
            chunks = cut(tl.load(shard + start, count), size)
            own = ring_reduce_scatter(chunks, rank, WAYS, op)
            chunks[own] = op.finish(chunks[own], size)
            ring_all_gather(chunks, rank, WAYS)
            for (begin, _), chunk in zip(chunk_bounds(count, size), chunks, strict=True):
                if chunk.numel:
                    tl.store(shard + start + begin, chunk)


def reduce(shard: Pointer, numel: int, op: ReduceOp, root: int, line: Line, message: int) -> None:
    """Kernel: replace the elements at `shard` of rank `root` by those of all ranks, combined; other ranks keep theirs.

    A chain that ends at the root, message after message: n bytes on each of its p - 1 links, all of them busy at once.
    """
    rank, size = line
    position = (rank - root - 1) % size
    for start, count in blocks(numel, message):
        with tl.scratch():
            # Asked for first, the message moves from the ring to scratch while the rank's own elements are loaded.
            incoming = tl.recv_async(BEHIND, count, shard.dtype) if position > 0 else None
            value = tl.load(shard + start, count)
            if incoming is not None:
                value = op.combine(value, received(incoming))
            if position < size - 1:
                tl.send(AHEAD, value)
            else:
                tl.store(shard + start, op.finish(value, size))


def broadcast(shard: Pointer, numel: int, root: int, line: Line, message: int) -> None:
    """Kernel: replace the elements at `shard` by those of rank `root`.

    A chain that begins at the root, message after message: n bytes on each of its p - 1 links, all of them busy at once.
    """
    rank, size = line
    position = (rank - root) % size
    if size == 1:
        return
    for start, count in blocks(numel, message):
        with tl.scratch():
            value = (
                tl.load(shard + start, count)
                if position == 0
                else tl.recv(BEHIND, count, shard.dtype)
            )
            if position < size - 1:
                tl.send(AHEAD, value)
            if position > 0:
                tl.store(shard + start, value)


def all_gather(
    shard: Pointer, numel: int, outputs: tuple[Pointer, ...], line: Line, message: int
) -> None:
    """Kernel: put the `numel` elements at `shard` of every rank r at `outputs[r]`.

    (p-1) n bytes a link, in p - 1 steps for a message.
    """
    rank, size = line
    for start, count in blocks(numel, message):
        with tl.scratch():
            value = tl.load(shard + start, count)
            for step in range(size - 1):
                # Asked for before it is needed, the next message moves from the ring to scratch while this one is stored.
                incoming = tl.recv_async(BEHIND, count, shard.dtype)
                tl.send(AHEAD, value)
                tl.store(outputs[(rank - step) % size] + start, value)
                value = received(incoming)
            tl.store(outputs[(rank + 1) % size] + start, value)


def all_gather_into_tensor(
    shard: Pointer, numel: int, output: Pointer, line: Line, message: int
) -> None:
    """Kernel: put the `numel` elements at `shard` of all ranks behind each other at `output`, as `all_gather` does."""
    all_gather(shard, numel, tuple(output + rank * numel for rank in range(line[1])), line, message)


def reduce_scatter_tensor(
    shard: Pointer, numel: int, op: ReduceOp, output: Pointer, line: Line, message: int
) -> None:
    """Kernel: of the p parts of `numel` elements at `shard`, put part r of all ranks, combined, at `output` of rank r.

    (p-1)/p n bytes a link, in p - 1 steps for a message of each part.
    """
    rank, size = line
    for start, count in blocks(numel, message):
        with tl.scratch():
            chunks = [tl.load(shard + part * numel + start, count) for part in range(size)]
            # One place back, so that the chunk that ends up whole on a rank is its own.
            ring_reduce_scatter(chunks, (rank - 1) % size, WAYS, op)
            tl.store(output + start, op.finish(chunks[rank], size))


def all_to_all_single(
    shard: Pointer, numel: int, output: Pointer, line: Line, message: int
) -> None:
    """Kernel: of the p parts of `numel` elements at `shard`, send part r to rank r; parts from rank r are part r of `output`.

    A part goes the shorter way round, from rank to rank: p/8 n bytes a link and direction, or (p*p - 1)/8p n for odd p.
    """
    rank, size = line
    for start, count in blocks(numel, message):
        source, target = shard + start, output + start
        with tl.scratch():
            tl.store(target + rank * numel, tl.load(source + rank * numel, count))
        for distance in range(1, size // 2 + 1):
            after, before = (rank + distance) % size * numel, (rank - distance) % size * numel
            # Where both ways are equally long, the first half of the elements goes one way, the rest the other.
            middle = (count + 1) // 2
            stop, begin = (count, 0) if 2 * distance < size else (middle, middle)
            with tl.scratch():
                forth, back = (
                    tl.load(source + after, stop),
                    tl.load(source + before + begin, count - begin),
                )
                forth, back = _travel(forth, back, distance)
                tl.store(target + before, forth)
                tl.store(target + after + begin, back)


def _travel(forth: Value, back: Value, distance: int) -> tuple[Value, Value]:
    """What comes from `distance` ranks behind and ahead, for what is sent as far ahead and behind."""
    for _ in range(distance):
        for way, value in ((AHEAD, forth), (BEHIND, back)):
            if value.numel:
                tl.send(way, value)
        forth, back = _from(BEHIND, forth), _from(AHEAD, back)
    return forth, back


def _from(way: str, like: Value) -> Value:
    return tl.recv(way, like.shape, like.dtype) if like.numel else like
