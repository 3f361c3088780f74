"""Collectives between every two ranks directly: each pair has queues of its own, and no rank passes
on the elements of others.

It is the only algorithm for parts of any sizes: a rank between two others would need the sizes,
too. The machine routes packets between SIPs that are not neighbours.

The messages to all ranks, and the copies of the own part, are one pipeline:

    DMA       load of message k + 2
    queues    message k, behind those to the same rank, beside those to all others
    arrivals  slots of all ranks, each straight from its ring to memory

The parts of a rank are merged in proportion: after each message about the same fraction of all of
them is on its way, and they end together. So the bytes of every link are spread over the whole
time, with parts of any sizes, and the link with the most bytes is always busy.

No two ranks wait for each other: all receives are posted before the first send, and slots go to
memory without the kernel. Each side has the size of a part, and the smaller message is the first
one: sizes that differ are noticed at once, unless they differ by whole messages.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import NamedTuple

from runtime.ccl.exchange import blocks_from_rest
from runtime.ccl.group import Group
from runtime.language import tl
from runtime.language.value import Pointer, Value

Part = tuple[Pointer, int]
"""Address and number of elements."""
BUFFERS = 16
"""The most messages that are loaded and have not left."""
AHEAD = 2
"""The messages that are loaded while an earlier one is sent: with more of them the loads would take
the DMA channels of the slots that arrive.
"""
_WHOLE = 1 << 40
"""Denominator of the fractions of a part."""


class PairwiseRank(NamedTuple):
    """Rank, world size, the elements of a message, and whether it fills its slot."""

    rank: int
    size: int
    message: int
    fills_slot: bool


def arguments(group: Group, itemsize: int) -> tuple[PairwiseRank]:
    """The only argument: a message is a slot, or less if all buffers would not fit the scratch."""
    slot_bytes = group.algorithm.slot_size
    room_bytes = group.topology.collective_scratch_bytes // BUFFERS // 64 * 64
    message_bytes = max(min(slot_bytes, room_bytes), 64)
    own = PairwiseRank(
        group.rank, group.world_size, message_bytes // itemsize, message_bytes == slot_bytes
    )
    return (own,)


def all_to_all(
    parts_sent: tuple[Part, ...], parts_received: tuple[Part, ...], own: PairwiseRank
) -> None:
    """Kernel: send part r of `parts_sent` to rank r; what rank r sends here goes to part r of
    `parts_received`.
    """
    # A kernel ends with its operations: nothing in it uses what arrives.
    for distance in range(1, own.size):
        source = (own.rank - distance) % own.size
        target, numel = parts_received[source]
        for start, count in _receives(numel, own):
            tl.recv_async(_direction(source), count, dst_addr=target + start)
    messages = list(_merged([numel for _, numel in parts_sent], own))
    if messages:
        with tl.scratch():
            _send(messages, parts_sent, parts_received[own.rank][0])


class PartBlock(NamedTuple):
    """A block of the part for the rank `peer`, which is `distance` ahead, from element `start` on.

    Messages are sent in the order of `due`, from equal ones those to the nearest rank first.
    """

    due: int
    distance: int
    peer: int
    start: int
    numel: int


def _merged(sizes: Sequence[int], own: PairwiseRank) -> Iterator[PartBlock]:
    """The messages of all parts in proportion; the own part has the distance of a whole round."""
    peers = [(distance, (own.rank + distance) % own.size) for distance in range(1, own.size + 1)]
    return merge(*(_messages(sizes[peer], own.message, distance, peer) for distance, peer in peers))


def _messages(numel: int, message: int, distance: int, peer: int) -> Iterator[PartBlock]:
    for start, count in blocks_from_rest(numel, message):
        # The fraction of the part up to the middle of the message.
        due = (2 * start + count) * _WHOLE // (2 * numel)
        yield PartBlock(due, distance, peer, start, count)


def _receives(numel: int, own: PairwiseRank) -> Iterator[tuple[int, int]]:
    """(start, count) of the receives of a part: its first message, and all others as one where
    their slots are those of one message.
    """
    if not own.fills_slot:
        yield from blocks_from_rest(numel, own.message)
        return
    rest = numel % own.message
    for start, count in ((0, rest), (rest, numel - rest)):
        if count:
            yield start, count


def _send(messages: Sequence[PartBlock], parts: Sequence[Part], own: Pointer) -> None:
    """Load all messages and send them; those for this rank are stored at `own`."""
    largest = max(each.numel for each in messages)
    # A load waits for what still reads its buffer, and what reads the buffer for its load.
    free = deque(tl.empty(largest, own.dtype) for _ in range(min(BUFFERS, len(messages))))
    loads = deque[tuple[PartBlock, Value]]()

    def load(each: PartBlock) -> None:
        buffer = free.popleft()
        tl.load_async(parts[each.peer][0] + each.start, each.numel, out=buffer[: each.numel])
        loads.append((each, buffer))

    def pass_on() -> None:
        each, buffer = loads.popleft()
        value = buffer[: each.numel]
        if each.distance == len(parts):
            tl.store_async(own + each.start, value)
        else:
            tl.send_async(_direction(each.peer), value)
        free.append(buffer)

    for number, each in enumerate(messages):
        load(each)
        if number >= AHEAD:
            pass_on()
    while loads:
        pass_on()


def all_to_all_single(
    inputs: tuple[Pointer, ...], numel: int, outputs: tuple[Pointer, ...], own: PairwiseRank
) -> None:
    """Kernel: send the `numel` elements at `inputs[r]` to rank r; those from rank r go to
    `outputs[r]`. (p-1)/p of the bytes of a rank leave it.
    """
    sent, received = (tuple((part, numel) for part in parts) for parts in (inputs, outputs))
    all_to_all(sent, received, own)


def gather(
    shard: Pointer, numel: int, outputs: tuple[Pointer, ...], root: int, own: PairwiseRank
) -> None:
    """Kernel: write the `numel` elements at `shard` of every rank r to `outputs[r]` of rank `root`.
    It receives (p-1) n bytes.
    """
    sent = [(shard, numel if peer == root else 0) for peer in range(own.size)]
    received = [(output, numel) for output in outputs] or [(shard, 0)] * own.size
    all_to_all(tuple(sent), tuple(received), own)


def scatter(
    inputs: tuple[Pointer, ...], numel: int, output: Pointer, root: int, own: PairwiseRank
) -> None:
    """Kernel: write the `numel` elements at `inputs[r]` of rank `root` to `output` of rank r. It
    sends (p-1) n bytes.
    """
    sent = [(source, numel) for source in inputs] or [(output, 0)] * own.size
    received = [(output, numel if peer == root else 0) for peer in range(own.size)]
    all_to_all(tuple(sent), tuple(received), own)


def _direction(rank: int) -> str:
    return f"global_rank_{rank}"
