"""The kernels of the gradient of attention: of queries, and of keys and values.

With p = exp(s - m) / l, from the highest scores m and the sums l of the forward pass, and dp = do
v^T, the gradient of a score is ds = p (dp - delta), delta = the sum of do o along a row (T. Dao et
al., "FlashAttention", NeurIPS 2022, algorithm 4). So dq = scale ds k, dk = scale ds^T q and dv =
p^T do. Sums over keys and sums over queries are two kernels: no PE adds to what another one holds,
the order of each sum is fixed, and scores are computed twice.
"""

from collections.abc import Iterator, Sequence

from runtime.device.kernels.attention.flash import BlockShape
from runtime.device.kernels.attention.gradient_loop import (
    GradientLoop,
    GradientOperands,
    GradientScores,
    GradientStep,
    HeldBlock,
    blocks_of,
    buffers,
)
from runtime.device.kernels.attention.score_mask import ScoreMask
from runtime.device.kernels.conversions import in_type
from runtime.language import tl

Parts = Sequence[tuple[BlockShape, Sequence[HeldBlock]]]


def gradient_of_queries(parts: Parts, operands: GradientOperands, scores: GradientScores) -> None:
    """Kernel: delta and the gradient of each block of queries."""
    for shape, blocks in parts:
        with tl.scratch():
            _QueryLoop(shape, operands, scores).run(blocks)


def gradient_of_keys(parts: Parts, operands: GradientOperands, scores: GradientScores) -> None:
    """Kernel: the gradients of each block of keys and of its values."""
    for shape, blocks in parts:
        with tl.scratch():
            _KeyLoop(shape, operands, scores).run(blocks)


class _QueryLoop(GradientLoop):
    """Holds queries; keys pass."""

    def __init__(
        self, shape: BlockShape, operands: GradientOperands, scores: GradientScores
    ) -> None:
        super().__init__(shape, operands, scores)
        self._known = buffers(3, (2, shape.rows), tl.float32)
        self._deltas = buffers(3, (shape.rows, 1), tl.float32)

    def multiply(self, step: GradientStep) -> None:
        super().multiply(step)
        if not step.is_first:
            return

        def chain(grad: tl.Value, out: tl.Value) -> tl.Value:
            products = in_type(grad, tl.float32) * in_type(out, tl.float32)
            return tl.sum(products, axis=1, keep_dims=True)

        _, grad, out = (each[step.item % 2] for each in self._held)
        delta, scores = self._deltas[step.item % 3], self._scoring
        tl.fused_async(chain, grad, out, out=delta)
        tl.store_async(scores.statistics + (2 * scores.rows + step.block.row), delta)

    def _parts(self, length: int) -> Iterator[tuple[int, int, slice]]:
        rows = self._shape.rows
        for first, end in blocks_of(length, self._shape):
            is_hidden = self._scoring.is_causal and end == length
            yield first, end, slice(end - first - rows if is_hidden else end - first, end - first)

    def _seen(self, passing: tl.Value, held: tl.Value) -> tl.Value:
        return held >= passing

    def _load_statistics(self, step: GradientStep) -> None:
        if step.is_first:
            known, scores = self._known[step.item % 3], self._scoring
            start = scores.statistics + step.block.row
            tl.load_async(start, known.shape, (scores.rows, 1), out=known)

    def _statistics(self, step: GradientStep) -> tuple[tl.Value, tl.Value, tl.Value]:
        known, delta = self._known[step.item % 3], self._deltas[step.item % 3]
        return known[0:1], known[1:2], delta.reshape(1, -1)

    def _load_mask(self, mask: ScoreMask, step: GradientStep) -> None:
        buffer, shape = self._masks[step.number % 3], (self._shape.rows, step.length)
        mask.moved(step.passing.mask).load((0, step.first), shape, buffer)

    def _mask_of(self, mask: ScoreMask, step: GradientStep) -> tl.Value:
        return mask.part((self._shape.rows, step.length), self._masks[step.number % 3]).mT


class _KeyLoop(GradientLoop):
    """Holds keys; the queries of each head with these keys pass."""

    def __init__(
        self, shape: BlockShape, operands: GradientOperands, scores: GradientScores
    ) -> None:
        super().__init__(shape, operands, scores)
        self._known = buffers(3, (3 * shape.width,), tl.float32)

    def _parts(self, length: int) -> Iterator[tuple[int, int, slice]]:
        for start, stop in reversed(list(blocks_of(length, self._shape))):
            # The queries from the first one with a key on: the longest blocks come first.
            first, end = length - stop, length - start
            is_hidden = self._scoring.is_causal and first == 0
            yield first, end, slice(0, self._shape.rows if is_hidden else 0)

    def _seen(self, passing: tl.Value, held: tl.Value) -> tl.Value:
        return passing >= held

    def _load_statistics(self, step: GradientStep) -> None:
        known, scores = self._values(step), self._scoring
        start = scores.statistics + (step.passing.row + step.first)
        tl.load_async(start, known.shape, (scores.rows, 1), out=known)

    def _statistics(self, step: GradientStep) -> tuple[tl.Value, tl.Value, tl.Value]:
        known = self._values(step)
        return known[0:1].mT, known[1:2].mT, known[2:3].mT

    def _values(self, step: GradientStep) -> tl.Value:
        return self._known[step.number % 3][: 3 * step.length].reshape(3, step.length)

    def _load_mask(self, mask: ScoreMask, step: GradientStep) -> None:
        buffer, shape = self._masks[step.number % 3], (step.length, self._shape.rows)
        mask.moved(step.passing.mask).load((step.first, 0), shape, buffer)

    def _mask_of(self, mask: ScoreMask, step: GradientStep) -> tl.Value:
        return mask.part((step.length, self._shape.rows), self._masks[step.number % 3])
