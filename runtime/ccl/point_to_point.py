"""Kernels of send and receive: a part of a message moves to the PE with the same coordinates in
another SIP.

A send loads ahead, so that the link has the next block when the last one has left:

    DMA     | load 1 | load 2 | load 3 | load 4 | ...
    queue            | send 1    | send 2    | send 3    | ...

A slot is returned a round trip after it left. The message is not delayed by its own credits as long
as the slots of the ring take as long on the link as this round trip.
"""

from collections import deque

from runtime.ccl.exchange import blocks
from runtime.language import tl
from runtime.language.value import Pointer

AHEAD = 2
"""Blocks that are loaded while an earlier one is sent: one load alone is latency in half of its
time.
"""


def send(
    elements: Pointer, numel: int, direction: str, slot: int, most: int, ahead: int = AHEAD
) -> None:
    """Kernel: send `numel` elements in blocks of up to `most` slots of `slot` elements; scratch
    holds `ahead` blocks and one.

    Blocks fill whole slots, so that the slots are those of one value of `numel` elements.
    """
    # A short message has four blocks, so that its loads and sends overlap as well.
    block = slot * max(min(most, numel // (4 * slot)), 1)
    parts = list(blocks(numel, block))
    with tl.scratch():
        # The first block is the largest.
        buffers = [tl.empty(parts[0][1], elements.dtype) for _ in parts[: ahead + 1]]
        loads = deque[tl.PendingValue]()
        for number in range(len(parts) + ahead):
            if number < len(parts):
                start, count = parts[number]
                target = buffers[number % len(buffers)][:count]
                loads.append(tl.load_async(elements + start, count, out=target))
            if number >= ahead:
                tl.send(direction, loads.popleft().wait())


def recv(elements: Pointer, numel: int, direction: str) -> None:
    """Kernel: receive what the peer's `send` sends, straight from the slots to memory."""
    tl.recv(direction, numel, dst_addr=elements)
