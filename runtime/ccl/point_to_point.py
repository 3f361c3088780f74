"""Kernels of send and receive: a part of a message moves to the PE with the same coordinates in
another SIP.
"""

from runtime.ccl.exchange import blocks
from runtime.language import tl
from runtime.language.value import Pointer


def send(elements: Pointer, numel: int, direction: str, block: int) -> None:
    """Kernel: send `numel` elements, of which `block` at a time are in scratch.

    `block` fills whole slots, so that the slots are those of one value of `numel` elements.
    """
    for start, count in blocks(numel, block):
        with tl.scratch():
            tl.send(direction, tl.load(elements + start, count))


def recv(elements: Pointer, numel: int, direction: str) -> None:
    """Kernel: receive what the peer's `send` sends, straight from the slots to memory."""
    tl.recv(direction, numel, dst_addr=elements)
