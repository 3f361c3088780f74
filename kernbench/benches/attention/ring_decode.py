"""Decode over a ring: every rank attends to its part of the keys; the states are all-reduced.

A rank computes the state (m, l, o) of one query over its own keys with two products. The states
pass along the ring, so that every rank gets all of them, combines them in the order of the ranks,
and has the same bits as the others.
"""

from kernbench import tl
from kernbench.benches.attention.ring_prefill import RankShape
from kernbench.benches.attention.rings import Ring, RingPosition
from runtime.device.kernels.attention.online_softmax import (
    MASKED,
    SoftmaxState,
    attended,
    block_state,
    combined,
)


def ring_decode(  # noqa: PLR0917 - the arguments of a launch are positional
    q: tl.Pointer,
    k: tl.Pointer,
    v: tl.Pointer,
    out: tl.Pointer,
    shape: RankShape,
    ring: Ring,
    context: int,
) -> None:
    """Kernel: row r of `out`, equal in every rank, is the attention of `q` over `context` keys.

    Rank r holds the keys from r * shape.keys on; keys from `context` on are masked. `q` is (1,
    depth), `k` and `v` are (ranks * keys, depth), `out` is (ranks, depth).
    """
    here = ring.here()
    _, keys, depth = shape
    own = here.rank * keys * depth
    query = tl.load(q, (1, depth))
    own_k = tl.load(k + own, (depth, keys), strides=(1, depth))
    own_v = tl.load(v + own, (keys, depth))
    present = min(max(context - here.rank * keys, 0), keys)
    scores = masked(tl.dot(query, own_k) * shape.scale, present)
    states = gathered(block_state(scores, own_v), here)
    tl.store(out + here.rank * depth, attended(combined(states), out.dtype))


def masked(scores: tl.Value, present: int) -> tl.Value:
    """`scores` (1, keys) with all but the first `present` masked."""
    keys = scores.shape[1]
    if present == keys:
        return scores
    hidden = tl.full((1, keys - present), MASKED, tl.float32)
    return tl.cat([scores[:, :present], hidden])[None, :] if present else hidden


def gathered(state: SoftmaxState, here: RingPosition) -> list[SoftmaxState]:
    """The states of all ranks in the order of the ranks: an all-gather over the ring.

    Each rank passes on what it has received last, n - 1 times.
    """
    message = tl.cat([*state])[None, :]
    messages = {here.rank: message}
    for step in range(1, len(here.ring.order)):
        tl.send(here.towards, message)
        message = tl.recv(here.source, message.shape, tl.float32)
        messages[here.rank_behind(step)] = message
    return [
        SoftmaxState(part[:, 0:1], part[:, 1:2], part[:, 2:])
        for _, part in sorted(messages.items())
    ]
