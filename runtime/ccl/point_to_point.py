"""Kernels of send and receive: a shard goes to the same PE of a SIP that a queue joins."""

from runtime.ccl.exchange import blocks
from runtime.language import tl
from runtime.language.value import Pointer

Part = tuple[str, Pointer, int]
"""One send or receive of a PE: direction, where its elements are, how many they are."""


def send(shard: Pointer, numel: int, way: str, message: int) -> None:
    """Kernel: send the `numel` elements at `shard` in direction `way`, in messages of at most
    `message` elements.
    """
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.send(way, tl.load(shard + start, count))


def recv(shard: Pointer, numel: int, way: str, message: int) -> None:
    """Kernel: receive what `send` sends, from direction `way`."""
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.store(shard + start, tl.recv(way, count, shard.dtype))


def exchange(sends: tuple[Part, ...], receives: tuple[Part, ...], message_bytes: int) -> None:
    """Kernel: send and receive what `exchange` of other PEs receives and sends, in messages of at
    most `message_bytes` bytes.

    All that comes has its place in memory before anything is sent, so no two PEs block each other.
    """
    coming = [
        tl.recv_async(way, count, dst_addr=target + start)
        for way, target, numel in receives
        for start, count in blocks(numel, message_bytes // target.dtype.itemsize)
    ]
    for way, source, numel in sends:
        send(source, numel, way, message_bytes // source.dtype.itemsize)
    for message in coming:
        tl.wait(message)
