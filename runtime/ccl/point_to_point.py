"""Kernels of send and receive: a shard moves to the PE with the same coordinates in another SIP."""

from runtime.ccl.exchange import blocks
from runtime.language import tl
from runtime.language.value import Pointer

Segment = tuple[str, Pointer, int]
"""One send or receive of a PE: direction, address and number of the elements."""


def send(shard: Pointer, numel: int, direction: str, message: int) -> None:
    """Kernel: send the `numel` elements at `shard` in messages of at most `message` elements."""
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.send(direction, tl.load(shard + start, count))


def recv(shard: Pointer, numel: int, direction: str, message: int) -> None:
    """Kernel: receive from `direction` what the peer's `send` sends."""
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.store(shard + start, tl.recv(direction, count, shard.dtype))


def exchange(sends: tuple[Segment, ...], receives: tuple[Segment, ...], message_bytes: int) -> None:
    """Kernel: run all sends and receives of a batch together, in messages of at most
    `message_bytes` bytes.

    The peers run `exchange` with the counterparts. All receives are posted to memory before the
    first send, so no two PEs wait for each other's credits.
    """
    pending = [
        tl.recv_async(direction, count, dst_addr=target + start)
        for direction, target, numel in receives
        for start, count in blocks(numel, message_bytes // target.dtype.itemsize)
    ]
    for direction, source, numel in sends:
        send(source, numel, direction, message_bytes // source.dtype.itemsize)
    for receive in pending:
        tl.wait(receive)
