"""The kernel of attention: blocks of queries by the flash loop of one PE, without stored scores."""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.device.kernels.attention.flash import BlockShape, FlashItem, flash
from runtime.device.kernels.attention.online_softmax import SoftmaxState, normalise
from runtime.device.kernels.attention.score_mask import ScoreMask
from runtime.language import tl
from runtime.language.value import Pointer

_TINY = 1e-30


class HeadQueries(NamedTuple):
    """The first elements of a block of queries, of its keys and values, of its result and of its
    mask, the number of its first row, how many keys it sees, and with which it begins.
    """

    q: int
    k: int
    v: int
    out: int
    mask: int
    row: int
    keys: int
    start: int


class AttentionLayout(NamedTuple):
    """The distances of rows in q, k, v and the result, the factor of a score, whether the mask is
    causal, that of a mask of the program, and the rows of all heads.
    """

    pitches: tuple[int, int, int]
    out_pitch: int
    scale: float
    is_causal: bool
    mask_strides: tuple[int, int]
    rows: int


def attend(  # noqa: PLR0917 - the arguments of a launch are positional
    parts: Sequence[tuple[BlockShape, Sequence[HeadQueries]]],
    layout: AttentionLayout,
    q: Pointer,
    k: Pointer,
    v: Pointer,
    out: Pointer,
    mask: Pointer | None,
    statistics: Pointer | None,
) -> None:
    """Kernel: the attention of each block of queries, for each shape in turn.

    `statistics` has, for each row of all heads, the highest score and the reciprocal of the sum of
    exponentials relative to it, or 0 for a row without keys; the gradient needs them.
    """
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
                mask=None if mask is None else ScoreMask(mask + block.mask, layout.mask_strides),
            )
            for block in blocks
        ]
        with tl.scratch():
            result = tl.empty((shape.rows, shape.depth), out.dtype)
            inverse = tl.empty((shape.rows, 1), tl.float32)
            for block, state in zip(blocks, flash(items, shape), strict=True):
                if mask is None and statistics is None:
                    normalise(state, result)
                else:
                    _normalise_rows(state, result, inverse)
                tl.store_async(out + block.out, result, (layout.out_pitch, 1))
                if statistics is not None:
                    tl.store_async(statistics + block.row, state.m)
                    tl.store_async(statistics + (layout.rows + block.row), inverse)


def _normalise_rows(state: SoftmaxState, out: tl.Value, inverse: tl.Value) -> None:
    """The result of attention, and the reciprocals of the sums; both 0 for a row without keys."""

    def chain(o: tl.Value, sums: tl.Value) -> tuple[tl.Value, tl.Value]:
        # The sum of a row with keys is at least 1, the exponential of its highest score.
        factor = tl.where(sums > 0.0, 1.0 / tl.maximum(sums, _TINY), 0.0)
        result = o * factor
        return result if out.dtype == tl.float32 else result.to(out.dtype), factor

    tl.fused(chain, state.o, state.l, out=(out, inverse))
