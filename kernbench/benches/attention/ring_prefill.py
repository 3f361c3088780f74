"""Prefill over a ring: every rank keeps its queries, the keys and values pass along it.

In step t a rank has the keys and values of the rank t positions before it, and extends the state of
its queries by them, with two products. n ranks do 2 n² products.
"""

from typing import NamedTuple

from kernbench import tl
from kernbench.benches.attention.rings import Ring
from runtime.device.kernels.attention.online_softmax import (
    SoftmaxState,
    attended,
    block_state,
    extended,
)


class RankShape(NamedTuple):
    """Tensors of a rank: `queries` rows of q, `keys` rows of k and v, `depth` columns of each."""

    queries: int
    keys: int
    depth: int

    @property
    def scale(self) -> float:
        """The factor of a score, 1 / sqrt(depth)."""
        return self.depth**-0.5


def ring_prefill(
    q: tl.Pointer, k: tl.Pointer, v: tl.Pointer, out: tl.Pointer, shape: RankShape, ring: Ring
) -> None:
    """Kernel: block r of `out` is the attention of block r of `q` over all blocks of `k` and `v`.

    The tensors are row-major, (ranks * rows, depth).
    """
    here = ring.here()
    queries, keys, depth = shape
    own = here.rank * queries * depth, here.rank * keys * depth
    block_q = tl.load(q + own[0], (queries, depth))
    # Transposed by the DMA: the product of scores needs the keys as columns.
    block_k = tl.load(k + own[1], (depth, keys), strides=(1, depth))
    block_v = tl.load(v + own[1], (keys, depth))
    state: SoftmaxState | None = None
    last = len(ring.order) - 1
    for step in range(last + 1):
        # Passed on before it is used: the link works beside the engines.
        if step < last:
            tl.send(here.towards, block_k)
            tl.send(here.towards, block_v)
        scores = tl.dot(block_q, block_k) * shape.scale
        state = extended(state, scores, block_v) if state else block_state(scores, block_v)
        if step < last:
            block_k = tl.recv(here.source, (depth, keys), k.dtype)
            block_v = tl.recv(here.source, (keys, depth), v.dtype)
    assert state is not None
    tl.store(out + own[0], attended(state, out.dtype))
