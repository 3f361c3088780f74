"""A software pipeline along a chain of ranks: the first position sends, the last one stores.

Message j of a position leaves as soon as message j of the position behind it has arrived, combined
with the own elements or unchanged. With M messages the last position has the first one after p - 1
messages, and one more after each of them: the chain is the pipeline of R. Thakur, R. Rabenseifner,
W. Gropp, "Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1), 2005.
Messages are used in the slots of their ring, as in `ring_pipeline`.

A position waits for messages of the previous position and for room in the ring of the next one. The
last position needs no room, so it takes every message that comes; by induction so does every
position before it, and no two wait for each other.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.ccl.exchange import blocks
from runtime.ccl.pipelines.message_pipeline import MessageCut, MessagesBehind, OwnPieces, RingQueues
from runtime.ccl.reduction import ReduceOp
from runtime.core.dtypes import DType
from runtime.language import tl
from runtime.language.value import Pointer


class RankChain(NamedTuple):
    """`numel` elements pass position `position` of `size`.

    `source` has the own elements, None where a position adds none; behind position 0 they are
    combined with `op`. `target` is where the result is stored, None where it is not.
    """

    position: int
    size: int
    source: Pointer | None
    target: Pointer | None
    numel: int
    dtype: DType
    op: ReduceOp | None = None


def pass_along(chain: RankChain, queues: RingQueues) -> None:
    """Kernel: carry out a pass."""
    if not chain.numel:
        return
    cut = MessageCut.of(queues, chain.numel, chain.dtype.itemsize)
    spans = list(blocks(chain.numel, cut.elements))
    with tl.scratch():
        if chain.source is None:
            _forward(chain, queues, cut, spans)
        else:
            _combine(chain, chain.source, queues, cut, spans)


def _forward(
    chain: RankChain, queues: RingQueues, cut: MessageCut, spans: Sequence[tuple[int, int]]
) -> None:
    """Send and store what arrives."""
    arrivals = MessagesBehind(queues, cut, [count for _, count in spans], chain.dtype)
    for start, _ in spans:
        arrivals.begin_iteration()
        message, buffer = arrivals.take()
        arrivals.hold(message, buffer, _pass_on(chain, queues, start, message))
    arrivals.finish()


def _combine(
    chain: RankChain,
    source: Pointer,
    queues: RingQueues,
    cut: MessageCut,
    spans: Sequence[tuple[int, int]],
) -> None:
    """Send or store the own elements, combined with what arrives."""
    sizes = [count for _, count in spans] if chain.position else []
    arrivals = MessagesBehind(queues, cut, sizes, chain.dtype)
    own = OwnPieces(cut, [(source + start, count) for start, count in spans], chain.dtype)
    for start, _ in spans:
        value, own_buffer = own.take()
        if chain.position:
            assert chain.op is not None, "what arrives is combined"
            message, buffer = arrivals.take()
            value = chain.op.combine(value, message, out=value)
            arrivals.release(message, buffer)
        # Only the last position stores: there the sum is complete, and an average divides it once.
        if chain.op is not None and chain.target is not None:
            value = chain.op.finish(value, chain.size, out=value)
        own.release(own_buffer, _pass_on(chain, queues, start, value))
    own.finish()


def _pass_on(
    chain: RankChain, queues: RingQueues, start: int, value: tl.Value
) -> list[tl.PendingResult]:
    """Send a message to the next position, and store it."""
    users = list[tl.PendingResult]()
    if chain.position < chain.size - 1:
        users.append(tl.send_async(queues.ahead, value))
    if chain.target is not None:
        users.append(tl.store_async(chain.target + start, value))
    return users
