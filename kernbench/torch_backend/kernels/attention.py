"""The kernel of attention: blocks of queries by the flash loop of one PE, without stored scores."""

from collections.abc import Sequence
from typing import NamedTuple

from kernbench.benches.attention.flash import BlockShape, FlashItem, flash
from kernbench.benches.attention.online_softmax import normalise
from runtime.language import tl
from runtime.language.value import Pointer


class HeadQueries(NamedTuple):
    """The first elements of a block of queries, of its keys and values and of its result, how many
    keys it sees, and with which it begins.
    """

    q: int
    k: int
    v: int
    out: int
    keys: int
    start: int


class AttentionLayout(NamedTuple):
    """The distances of rows in q, k, v and the result, the factor of a score, and the mask."""

    pitches: tuple[int, int, int]
    out_pitch: int
    scale: float
    is_causal: bool


def attend(
    parts: Sequence[tuple[BlockShape, Sequence[HeadQueries]]],
    layout: AttentionLayout,
    q: Pointer,
    k: Pointer,
    v: Pointer,
    out: Pointer,
) -> None:
    """Kernel: the attention of each block of queries, for each shape in turn."""
    for shape, blocks in parts:
        items = [
            FlashItem(
                q + block.q,
                k + block.k,
                v + block.v,
                block.keys,
                is_causal=layout.is_causal,
                start=block.start,
                pitches=layout.pitches,
                scale=layout.scale,
            )
            for block in blocks
        ]
        with tl.scratch():
            result = tl.empty((shape.rows, shape.depth), out.dtype)
            for block, state in zip(blocks, flash(items, shape), strict=True):
                normalise(state, result)
                tl.store_async(out + block.out, result, (layout.out_pitch, 1))
