"""Softmax over keys that arrive block by block: the state (m, l, o) of a row and its arithmetic.

For the scores s and values v of the keys so far, m = max s, l = sum of exp(s - m) and o = sum of
exp(s - m) v; the result of attention is o / l. Two states of the same rows combine: m* = max m, l*
= sum of exp(m - m*) l, o* = sum of exp(m - m*) o (M. Milakov, N. Gimelshein, "Online normalizer
calculation for softmax", 2018). Only differences of scores enter an exponential, so it does not
overflow, and a number added to all scores changes nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from runtime.language import tl

MASKED = -1e30
"""The score of a masked key, finite because inf - inf is NaN. Next to a key that is not masked, its
exponential is 0; a state in which all keys are masked combines with weight 0.
"""


class SoftmaxState(NamedTuple):
    """`m` and `l` are (rows, 1), `o` is (rows, depth), all in float32."""

    m: tl.Value
    l: tl.Value  # noqa: E741 - the letter of the literature
    o: tl.Value


def block_state(scores: tl.Value, v: tl.Value) -> SoftmaxState:
    """The state of one block: `scores` (rows, keys) in float32, `v` (keys, depth)."""
    m = tl.max(scores, axis=1, keep_dims=True)
    powers = tl.exp(scores - m)
    return SoftmaxState(m, tl.sum(powers, axis=1, keep_dims=True), tl.dot(powers.to(v.dtype), v))


def extended(state: SoftmaxState, scores: tl.Value, v: tl.Value) -> SoftmaxState:
    """`state` and one more block of keys."""
    m = tl.maximum(state.m, tl.max(scores, axis=1, keep_dims=True))
    powers, decay = tl.exp(scores - m), tl.exp(state.m - m)
    l = tl.fma(state.l, decay, tl.sum(powers, axis=1, keep_dims=True))  # noqa: E741
    # The accumulator of the GEMM engine adds the old sum.
    return SoftmaxState(m, l, tl.dot(powers.to(v.dtype), v, acc=state.o * decay))


def combined(states: Sequence[SoftmaxState]) -> SoftmaxState:
    """The state over all keys, from the states of several parts of them.

    The sums have the order of `states`: ranks that pass the same order get the same bits.
    """
    m = states[0].m
    for state in states[1:]:
        m = tl.maximum(m, state.m)
    weights = [tl.exp(state.m - m) for state in states]
    l, o = states[0].l * weights[0], states[0].o * weights[0]  # noqa: E741
    for state, weight in zip(states[1:], weights[1:], strict=True):
        l, o = tl.fma(state.l, weight, l), tl.fma(state.o, weight, o)  # noqa: E741
    return SoftmaxState(m, l, o)


def attended(state: SoftmaxState, dtype: tl.DType) -> tl.Value:
    """The result of attention, rounded once to `dtype`."""
    result = state.o / state.l
    return result if dtype == tl.float32 else result.to(dtype)


def normalise(state: SoftmaxState, out: tl.Value) -> None:
    """Write the result of attention over `out`, in one stream: o times the reciprocal of l."""

    def chain(o: tl.Value, l: tl.Value) -> tl.Value:  # noqa: E741
        result = o * (1.0 / l)
        return result if out.dtype == tl.float32 else result.to(out.dtype)

    tl.fused(chain, state.o, state.l, out=out)


def joined(one: SoftmaxState, other: SoftmaxState, out: SoftmaxState | None = None) -> SoftmaxState:
    """The state over the keys of both, in one stream; over `out`, which may be one of them."""

    def chain(*both: tl.Value) -> tuple[tl.Value, ...]:
        (m, l, o), (other_m, other_l, other_o) = both[:3], both[3:]  # noqa: E741
        highest = tl.maximum(m, other_m)
        # Both sums become relative to the higher maximum, so neither weight exceeds 1.
        weight, other_weight = tl.exp(m - highest), tl.exp(other_m - highest)
        return (
            highest,
            tl.fma(other_l, other_weight, l * weight),
            tl.fma(other_o, other_weight, o * weight),
        )

    return SoftmaxState(*tl.fused(chain, *one, *other, out=None if out is None else tuple(out)))
