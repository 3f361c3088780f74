"""Kernels of send and receive: a shard goes to the same PE of a SIP that a queue joins."""

from runtime.ccl.exchange import blocks
from runtime.language import tl
from runtime.language.value import Pointer


def send(shard: Pointer, numel: int, way: str, message: int) -> None:
    """Kernel: send the `numel` elements at `shard` in direction `way`, in messages of at most `message` elements."""
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.send(way, tl.load(shard + start, count))


def recv(shard: Pointer, numel: int, way: str, message: int) -> None:
    """Kernel: receive what `send` sends, from direction `way`."""
    for start, count in blocks(numel, message):
        with tl.scratch():
            tl.store(shard + start, tl.recv(way, count, shard.dtype))
