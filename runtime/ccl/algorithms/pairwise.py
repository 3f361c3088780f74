"""Collectives between every two ranks directly: each pair has queues of its own, and no rank passes
on the elements of others.

It is the only algorithm for parts of any sizes: a rank between two others would need the sizes,
too. The machine routes packets between SIPs that are not neighbours.
"""

from runtime.ccl.exchange import blocks_from_rest
from runtime.ccl.group import Group
from runtime.language import tl
from runtime.language.value import Pointer

Part = tuple[Pointer, int]
"""Address and number of elements."""


def arguments(group: Group, itemsize: int) -> tuple[int, int, int]:
    """(rank, world size, elements per message): a message fits the receive ring and the scratch."""
    return group.rank, group.world_size, group.ring_bytes_within_scratch(1) // itemsize


def all_to_all(
    parts_sent: tuple[Part, ...],
    parts_received: tuple[Part, ...],
    rank: int,
    size: int,
    message: int,
) -> None:
    """Kernel: send part r of `parts_sent` to rank r; what rank r sends here goes to part r of
    `parts_received`.

    Each rank begins with the next rank and goes on round the group, so no two ranks send to the
    same rank at once. All receives are posted before the first send, so no two ranks wait for each
    other's credits.
    """
    pending = list[tl.PendingResult]()
    for distance in range(1, size):
        source = (rank - distance) % size
        target, numel = parts_received[source]
        pending += [
            tl.recv_async(_direction(source), count, dst_addr=target + start)
            for start, count in blocks_from_rest(numel, message)
        ]
    for distance in range(size):
        peer = (rank + distance) % size
        source, numel = parts_sent[peer]
        for start, count in blocks_from_rest(numel, message):
            with tl.scratch():
                value = tl.load(source + start, count)
                if peer == rank:
                    tl.store(parts_received[rank][0] + start, value)
                else:
                    tl.send(_direction(peer), value)
    for receive in pending:
        tl.wait(receive)


def all_to_all_single(
    inputs: tuple[Pointer, ...],
    numel: int,
    outputs: tuple[Pointer, ...],
    rank: int,
    size: int,
    message: int,
) -> None:
    """Kernel: send the `numel` elements at `inputs[r]` to rank r; those from rank r go to
    `outputs[r]`. (p-1)/p of the bytes of a rank leave it.
    """
    sent, received = (tuple((part, numel) for part in parts) for parts in (inputs, outputs))
    all_to_all(sent, received, rank, size, message)


def gather(  # noqa: PLR0917 - the arguments of a kernel are flat
    shard: Pointer,
    numel: int,
    outputs: tuple[Pointer, ...],
    root: int,
    rank: int,
    size: int,
    message: int,
) -> None:
    """Kernel: write the `numel` elements at `shard` of every rank r to `outputs[r]` of rank `root`.
    It receives (p-1) n bytes.
    """
    own = [(shard, numel if peer == root else 0) for peer in range(size)]
    received = [(output, numel) for output in outputs] or [(shard, 0)] * size
    all_to_all(tuple(own), tuple(received), rank, size, message)


def scatter(  # noqa: PLR0917 - the arguments of a kernel are flat
    inputs: tuple[Pointer, ...],
    numel: int,
    output: Pointer,
    root: int,
    rank: int,
    size: int,
    message: int,
) -> None:
    """Kernel: write the `numel` elements at `inputs[r]` of rank `root` to `output` of rank r. It
    sends (p-1) n bytes.
    """
    sent = [(source, numel) for source in inputs] or [(output, 0)] * size
    received = [(output, numel if peer == root else 0) for peer in range(size)]
    all_to_all(tuple(sent), tuple(received), rank, size, message)


def _direction(rank: int) -> str:
    return f"global_rank_{rank}"
