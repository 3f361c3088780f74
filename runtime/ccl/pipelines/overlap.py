"""Overlaps the blocks of a collective kernel: while one of them waits for messages, others send.

A block is a generator. It posts its receives and starts its sends, yields for a `flight`, and uses
what has arrived. All ranks resume their blocks in one order, so the messages of each direction have
one order, too. With stages of one turn:

    turn        i              i + 1          i + 2
    block i+2                                 stage 0
    block i+1                  stage 0        stage 1
    block i     stage 0        stage 1        stage 2

So the latency of a step (route, addition) is paid once, and not once for every block, as long as
the links need more time for the messages of a turn.

Deadlock freedom. A block waits for messages which the other rank has sent `FLIGHT` turns before,
and sends wait for slots in the background. If the receiver has made room in the ring for the
messages of a turn when its next turn ends, they have left before it waits for them: the earliest
turn that any rank has not finished ends on all ranks. The algorithm states how many slots that
takes, or copies messages out of the slots (`in_place=False`): a receive that is posted in the turn
of the send empties them without the kernel.
"""

from collections.abc import Generator, Iterable

Block = Generator[None]
"""The stages of a block, with a `yield` between each two."""

FLIGHT = 2
"""Turns from the send of a message to its use. With one turn, the links would be idle from the last
byte of a turn until it has arrived at all ranks."""


def flight() -> Block:
    """The messages of this turn travel."""
    for _ in range(FLIGHT):
        yield


def overlapped(blocks: Iterable[Block], depth: int) -> None:
    """Kernel: carry out blocks with equal numbers of stages, of which up to `depth` are in work.

    In each turn one more block begins, and each block advances by a stage. A block is taken from
    the iterable when it begins: block i may use the buffers of block i - depth.
    """
    following, active = iter(blocks), list[Block]()
    while True:
        if len(active) < depth and (block := next(following, None)) is not None:
            # The newest block first: its messages travel while older blocks wait for theirs.
            active.insert(0, block)
        if not active:
            return
        active = [block for block in active if _advance(block)]


def _advance(block: Block) -> bool:
    """Whether the block has another stage."""
    try:
        next(block)
    except StopIteration:
        return False
    return True
