"""The loop of the gradient of attention on one PE, without stored scores.

The loop *holds* a block of queries with its gradient, or of keys with its values; the other
sequence *passes* block by block. It is a software pipeline over the blocks of all items. While the
vector engine computes the gradients of the scores of step n,

- the GEMM engine adds the products of step n - 1, then multiplies the operands of step n + 1;
- the DMA loads the operands of step n + 2.

Scores have a row for each element that passes, and a column for each one that is held.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from runtime.device.kernels.attention.flash import BlockShape
from runtime.device.kernels.attention.score_mask import ScoreMask, masked
from runtime.device.kernels.conversions import in_type
from runtime.language import tl
from runtime.language.value import Pointer


class Rows(NamedTuple):
    """Element 0 of a tensor with rows of contiguous elements, and their distance."""

    pointer: Pointer
    pitch: int


class Passing(NamedTuple):
    """The first elements of a sequence that passes, and of its mask; the number of its first row in
    the statistics, and its length.
    """

    starts: tuple[int, int]
    mask: int
    row: int
    length: int


class HeldBlock(NamedTuple):
    """The first elements of a block: of its operands and of its results; the number of its first
    row in the statistics; the sequences that pass, and the place in them, of `turns`, with which it
    begins.
    """

    starts: tuple[int, ...]
    results: tuple[int, ...]
    row: int
    passing: tuple[Passing, ...]
    turn: int
    turns: int


class GradientOperands(NamedTuple):
    """The operands of a gradient. Of queries: held q, do and o, passing k and v, result dq. Of
    keys: held k and v, passing q and do, results dk and dv.
    """

    held: tuple[Rows, ...]
    passing: tuple[Rows, Rows]
    results: tuple[Rows, ...]


class GradientScores(NamedTuple):
    """The factor of a score, its masks, and the statistics: those that `attend` stores, then delta,
    each for all `rows` of all heads.
    """

    scale: float
    is_causal: bool
    mask: ScoreMask | None
    statistics: Pointer
    rows: int


class GradientStep(NamedTuple):
    """`length` elements that pass, from `first` on. The `hidden` first or last ones are partly
    hidden by a causal mask.
    """

    number: int
    item: int
    block: HeldBlock
    passing: Passing
    first: int
    length: int
    hidden: slice
    is_first: bool
    is_last: bool


class GradientLoop(ABC):
    """The stages of the loop, and as many buffers of each kind as steps, or items, use at once."""

    def __init__(
        self, shape: BlockShape, operands: GradientOperands, scores: GradientScores
    ) -> None:
        rows, width, depth = self._shape = shape
        self._operands, self._scoring = operands, scores
        self._dtype = dtype = operands.held[0].pointer.dtype
        results = len(operands.results)
        self._held = [buffers(2, (rows, depth), dtype) for _ in operands.held]
        self._passing = [buffers(4, (width, depth), dtype) for _ in range(2)]
        # Scores and the gradients of probabilities; the gradients of scores, and probabilities.
        self._products = [buffers(2, (width, rows), tl.float32) for _ in range(2)]
        self._factors = [buffers(2, (width, rows), dtype) for _ in range(results)]
        self._sums = [buffers(2, (rows, depth), tl.float32) for _ in range(results)]
        self._results = [tl.empty((rows, depth), dtype) for _ in range(results)]
        mask = scores.mask
        self._masks = [] if mask is None else buffers(3, (rows * width,), mask.pointer.dtype)

    def run(self, blocks: Sequence[HeldBlock]) -> None:
        """The gradients of all blocks."""
        steps = list(self._steps(blocks))
        # How many steps each stage is ahead of the vector engine. A command waits for those in
        # flight that use its values, so nothing else orders them.
        stages: tuple[tuple[int, Callable[[GradientStep], None]], ...] = (
            (0, self.differentiate),
            (-1, self.add),
            (2, self.load),
            (1, self.multiply),
            (-2, self.finish),
        )
        for number in range(-2, len(steps) + 2):
            for ahead, stage in stages:
                if 0 <= number + ahead < len(steps):
                    stage(steps[number + ahead])

    def load(self, step: GradientStep) -> None:
        """Load the elements of a step, and those that its item holds."""
        if step.is_first:
            self._load_held(step)
        self._load_statistics(step)
        for rows, start, buffers in zip(
            self._operands.passing, step.passing.starts, self._passing, strict=True
        ):
            _load(rows, start + step.first * rows.pitch, buffers[step.number % 4][: step.length])
        if self._scoring.mask is not None:
            self._load_mask(self._scoring.mask, step)

    def multiply(self, step: GradientStep) -> None:
        """Start the products of a step: scores, and the gradients of probabilities."""
        scores, products = (each[step.number % 2] for each in self._products)
        (a, held_a), (b, held_b) = (
            (passing[step.number % 4], held[step.item % 2].mT)
            for passing, held in zip(self._passing, self._held, strict=False)
        )
        hidden, whole = step.hidden, slice(step.length)
        for part in (slice(0, hidden.start), slice(hidden.stop, step.length)):
            if part.start < part.stop:
                tl.composite("gemm", a[part], held_a, scores[part])
        if hidden.start < hidden.stop:
            tl.composite("gemm", a[hidden], held_a, scores[hidden], acc=self._causal)
        tl.composite("gemm", b[whole], held_b, products[whole])

    def differentiate(self, step: GradientStep) -> None:
        """Start the gradients of the scores of a step, in one stream through the vector engine."""
        scale, whole = self._scoring.scale, slice(step.length)
        scores, products = (each[step.number % 2][whole] for each in self._products)
        outs = tuple(each[step.number % 2][whole] for each in self._factors)
        highest, inverse, delta = self._statistics(step)
        given = self._scoring.mask
        mask = None if given is None else self._mask_of(given, step)

        def chain(scores: tl.Value, products: tl.Value) -> tuple[tl.Value, ...]:
            value, factor = (scores, scale) if mask is None else masked(scores, mask, scale)
            powers = tl.exp(tl.fma(value, factor, -highest)) * inverse
            both = (powers * (products - delta), powers)[: len(outs)]
            return tuple(in_type(each, self._dtype) for each in both)

        tl.fused_async(chain, scores, products, out=outs)

    def add(self, step: GradientStep) -> None:
        """Start the products that a step adds to the sums of its item."""
        for factors, passing, sums in zip(self._factors, self._passing, self._sums, strict=False):
            powers, total = factors[step.number % 2][: step.length].mT, sums[step.item % 2]
            elements = passing[step.number % 4][: step.length]
            tl.composite("gemm", powers, elements, total, acc=None if step.is_first else total)

    def finish(self, step: GradientStep) -> None:
        """Scale and store the sums of an item, behind its last step."""
        if not step.is_last:
            return
        # The sums of values are not scaled: a product with 1 is exact.
        for index, factor in enumerate((self._scoring.scale, 1.0)[: len(self._results)]):
            result, rows = self._results[index], self._operands.results[index]

            def chain(total: tl.Value, factor: float = factor) -> tl.Value:
                return in_type(total * factor, self._dtype)

            tl.fused_async(chain, self._sums[index][step.item % 2], out=result)
            tl.store_async(rows.pointer + step.block.results[index], result, (rows.pitch, 1))

    @cached_property
    def _causal(self) -> tl.Value:
        """0 where the query sees the key; made beside the first loads."""
        token, zero = tl.arange(0, self._shape.rows), tl.zeros((1, 1), tl.float32)
        seen = self._seen(token[:, None], token[None, :])
        return tl.where(seen, zero, float("-inf"))

    def _steps(self, blocks: Sequence[HeldBlock]) -> Iterator[GradientStep]:
        number = 0
        for item, block in enumerate(blocks):
            parts = [
                (passing, *part)
                for passing in block.passing
                for part in self._parts(passing.length)
            ]
            turn = block.turn * len(parts) // block.turns
            parts = [*parts[turn:], *parts[:turn]]
            for place, (passing, first, end, hidden) in enumerate(parts):
                yield GradientStep(
                    number=number,
                    item=item,
                    block=block,
                    passing=passing,
                    first=first,
                    length=end - first,
                    hidden=hidden,
                    is_first=place == 0,
                    is_last=place == len(parts) - 1,
                )
                number += 1

    def _load_held(self, step: GradientStep) -> None:
        for rows, start, buffers in zip(
            self._operands.held, step.block.starts, self._held, strict=True
        ):
            _load(rows, start, buffers[step.item % 2])

    @abstractmethod
    def _parts(self, length: int) -> Iterator[tuple[int, int, slice]]:
        """The [first, end) elements of each step, and those that a causal mask hides in part."""

    @abstractmethod
    def _seen(self, passing: tl.Value, held: tl.Value) -> tl.Value:
        """The scores of a block on the diagonal that exist."""

    @abstractmethod
    def _load_statistics(self, step: GradientStep) -> None: ...

    @abstractmethod
    def _statistics(self, step: GradientStep) -> tuple[tl.Value, tl.Value, tl.Value]:
        """The highest scores, the reciprocal sums and the deltas, as rows or columns of scores."""

    @abstractmethod
    def _load_mask(self, mask: ScoreMask, step: GradientStep) -> None: ...

    @abstractmethod
    def _mask_of(self, mask: ScoreMask, step: GradientStep) -> tl.Value: ...


def blocks_of(length: int, shape: BlockShape) -> Iterator[tuple[int, int]]:
    """[first, end) of blocks of nearly one size, multiples of the rows but the first one, which is
    the shortest.
    """
    unit = min(shape.rows, shape.width)
    count = tl.cdiv(length, shape.width // unit * unit)
    width = tl.cdiv(length, count * unit) * unit
    for end in range(length - (count - 1) * width, length + 1, width):
        yield max(0, end - width), end


def buffers(count: int, shape: tuple[int, ...], dtype: tl.DType) -> list[tl.Value]:
    """New values of one shape."""
    return [tl.empty(shape, dtype) for _ in range(count)]


def _load(rows: Rows, start: int, out: tl.Value) -> None:
    tl.load_async(rows.pointer + start, out.shape, (rows.pitch, 1), out=out)
