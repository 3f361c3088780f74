"""Flash attention on one PE: scores stay in TCM, and all engines of the PE work at the same time.

For a block of queries the keys pass block by block, and the state (m, l, o) of online softmax stays
in TCM (T. Dao et al., "FlashAttention", NeurIPS 2022). The loop is a software pipeline over the
blocks of all items. While the vector engine computes the exponentials of step n,

- the GEMM engine multiplies the exponentials of step n - 1 with the values, and with ones, which
  gives the sums of rows; then the keys of step n + 2 with the queries;
- the DMA loads the keys of step n + 3 and the values of step n + 1.

Scores are transposed: a row for each key. The keys that a causal mask cuts are then a block of
rows, the last one, whose product starts from the mask in the accumulator: a mask takes no time of
the vector engine.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from runtime.device.kernels.attention.online_softmax import MASKED, SoftmaxState
from runtime.device.kernels.attention.score_mask import LOWEST, ScoreMask, masked
from runtime.language import tl


class BlockShape(NamedTuple):
    """Queries (`rows`) and keys (at most `width`) of a block of scores; `depth` columns of q, k and
    v.
    """

    rows: int
    width: int
    depth: int

    @property
    def scale(self) -> float:
        """The factor of a score, 1 / sqrt(depth)."""
        return self.depth**-0.5


@dataclass(frozen=True)
class FlashItem:
    """A block of queries and the `keys` keys and values to which it attends, all row-major without
    gaps, or with rows that are `pitches` elements apart in q, k and v. The factor of a score is
    `scale`, by default that of the shape.

    With `is_causal` the last query belongs to the last key, and keys behind a query are masked.
    The keys come block by block: first the block of key number `start` and those behind it, then
    the blocks before.
    With `pages` keys and values lie in pages of `page_keys` rows, which divide the width of a block
    and the keys: k and v point to page 0, and `pages` are the numbers of the item's pages.
    `mask` begins with the first query and key; all items have masks of one type, or none.
    """

    q: tl.Pointer
    k: tl.Pointer
    v: tl.Pointer
    keys: int
    is_causal: bool = False
    start: int = 0
    pages: tuple[int, ...] = ()
    page_keys: int = 0
    pitches: tuple[int, int, int] | None = None
    scale: float | None = None
    mask: ScoreMask | None = None

    def strides(self, operand: Literal[0, 1, 2]) -> tuple[int, int] | None:
        """The strides of q, k or v; None if its rows are adjacent."""
        return None if self.pitches is None else (self.pitches[operand], 1)


def flash(items: Sequence[FlashItem], shape: BlockShape) -> Iterator[SoftmaxState]:
    """The state of each item in turn, which is valid until the next one is taken.

    A causal item has a multiple of `shape.rows` keys.
    """
    steps = list(_steps(items, shape))
    if not steps:
        return
    mask = steps[0].flash.mask
    loop = _FlashLoop(steps[0].flash.v.dtype, shape, None if mask is None else mask.pointer.dtype)
    # The stages of the pipeline, and how many steps each of them is ahead of the exponentials. A
    # command waits for those in flight that use its values, so nothing else orders them.
    stages = (
        (-1, loop.decay),
        (0, loop.exponentiate),
        (3, loop.load_keys),
        (1, loop.load_values),
        (-1, loop.add_values),
        (2, loop.multiply_keys),
        (1, loop.load_mask),
    )
    for number in range(-3, len(steps) + 2):
        for ahead, stage in stages:
            if 0 <= number + ahead < len(steps):
                stage(steps[number + ahead])
        # The last products of an item end beside the exponentials of the next one.
        if number >= 2 and steps[number - 2].is_last:
            yield loop.state(steps[number - 2])


class _Step(NamedTuple):
    """One block of scores: `keys` keys of an item from `first` on."""

    number: int
    flash: FlashItem
    item: int
    first: int
    keys: int
    is_first: bool
    is_last: bool

    def masked(self, rows: int) -> int:
        """The number of keys, the last ones, that are hidden from some queries."""
        has_last_key = self.first + self.keys == self.flash.keys
        return rows if self.flash.is_causal and has_last_key else 0


def _steps(items: Sequence[FlashItem], shape: BlockShape) -> Iterator[_Step]:
    number = 0
    for item, each in enumerate(items):
        parts = _key_blocks(each, shape)
        turn = each.start * len(parts) // each.keys
        for place, (first, end) in enumerate([*parts[turn:], *parts[:turn]]):
            yield _Step(
                number=number,
                flash=each,
                item=item,
                first=first,
                keys=end - first,
                is_first=place == 0,
                is_last=place == len(parts) - 1,
            )
            number += 1


def _key_blocks(item: FlashItem, shape: BlockShape) -> list[tuple[int, int]]:
    """The first key of each block, and the key behind the block.

    Blocks have nearly one size, the first one is the shortest: the exponentials of a short block do
    not hide the products of a long one before it.
    """
    unit = item.page_keys or min(shape.rows, shape.width)
    count = tl.cdiv(item.keys, shape.width // unit * unit)
    width = tl.cdiv(item.keys, count * unit) * unit
    ends = range(item.keys - (count - 1) * width, item.keys + 1, width)
    return [(max(0, end - width), end) for end in ends]


class _FlashLoop:
    """The stages of the loop, and as many buffers of each kind as steps, or items, use at once."""

    def __init__(self, dtype: tl.DType, shape: BlockShape, mask: tl.DType | None) -> None:
        rows, width, depth = self._shape = shape

        def buffers(count: int, shape: tuple[int, ...], dtype: tl.DType) -> list[tl.Value]:
            return [tl.empty(shape, dtype) for _ in range(count)]

        self._q = buffers(2, (rows, depth), dtype)
        self._k, self._v = (buffers(3, (width, depth), dtype) for _ in range(2))
        self._scores = buffers(3, (width, rows), tl.float32)
        self._powers = buffers(2, (width, rows), dtype)
        self._decays = buffers(2, (1, rows), tl.float32)
        self._states = [
            SoftmaxState(*(tl.empty((rows, columns), tl.float32) for columns in (1, 1, depth)))
            for _ in range(3)
        ]
        self._ones = tl.full((width, 1), 1, dtype)
        self._masks = [] if mask is None else buffers(3, (rows * width,), mask)

    def state(self, step: _Step) -> SoftmaxState:
        """The state of the item of a step."""
        return self._states[step.item % 3]

    def load_keys(self, step: _Step) -> None:
        """Load the keys of a step, and the queries of its item."""
        if step.is_first:
            q = self._q[step.item % 2]
            tl.load_async(step.flash.q, q.shape, step.flash.strides(0), out=q)
        self._load(step, 1, self._k[step.number % 3])

    def load_values(self, step: _Step) -> None:
        """Load the values of a step."""
        self._load(step, 2, self._v[step.number % 3])

    def load_mask(self, step: _Step) -> None:
        """Load the mask of a step, if its item has one."""
        mask = step.flash.mask
        if mask is not None:
            mask.load((0, step.first), (self._shape.rows, step.keys), self._masks[step.number % 3])

    def multiply_keys(self, step: _Step) -> None:
        """Start the product of the keys of a step and the queries of its item."""
        q, k = self._q[step.item % 2].mT, self._k[step.number % 3]
        scores, seen = self._scores[step.number % 3], step.keys - step.masked(self._shape.rows)
        if seen:
            tl.composite("gemm", k[:seen], q, scores[:seen])
        if seen < step.keys:
            hidden = slice(seen, step.keys)
            tl.composite("gemm", k[hidden], q, scores[hidden], acc=self._mask)

    def exponentiate(self, step: _Step) -> None:
        """Start the exponentials of a step, in one stream through the vector engine."""
        scale, m = step.flash.scale or self._shape.scale, self.state(step).m.reshape(1, -1)
        scores, powers, decay = (
            self._scores[step.number % 3][: step.keys],
            self._powers[step.number % 2][: step.keys],
            self._decays[step.number % 2],
        )
        mask = self._mask_of(step)

        # The scale is a factor of scores and of their maximum: it costs no operation of its own.
        def chain(scores: tl.Value, *before: tl.Value) -> tuple[tl.Value, ...]:
            value, factor = (scores, scale) if mask is None else masked(scores, mask, scale)
            highest = tl.max(value, axis=0, keep_dims=True) * factor
            for m in before:
                highest = tl.maximum(m, highest)
            if mask is not None and not before:
                highest = tl.maximum(highest, LOWEST)
            # Relative to the highest score so far no exponential exceeds 1 (M. Milakov, N.
            # Gimelshein, Online normalizer calculation for softmax, 2018).
            exps = tl.exp(tl.fma(value, factor, -highest)).to(powers.dtype)
            return exps, highest, *(tl.exp(m - highest) for m in before)

        if step.is_first:
            tl.fused_async(chain, scores, out=(powers, m))
        else:
            tl.fused_async(chain, scores, m, out=(powers, m, decay))

    def decay(self, step: _Step) -> None:
        """Make the sums of the steps before relative to the highest score with this step."""
        if step.is_first:
            return

        def chain(o: tl.Value, sums: tl.Value, decay: tl.Value) -> tuple[tl.Value, tl.Value]:
            # Sums so far are relative to the highest score before: exp(m before - m now) corrects
            # both.
            return o * decay, sums * decay

        _, sums, o = self.state(step)
        decay = self._decays[step.number % 2].reshape(-1, 1)
        tl.fused_async(chain, o, sums, decay, out=(o, sums))

    def add_values(self, step: _Step) -> None:
        """Start the products of the exponentials of a step with the values and with ones."""
        powers, keys = self._powers[step.number % 2][: step.keys].mT, slice(step.keys)
        _, sums, o = self.state(step)
        # A product with ones adds up the rows on the GEMM engine: the vector engine has the
        # exponentials to compute.
        for factor, total in ((self._v[step.number % 3], o), (self._ones, sums)):
            tl.composite("gemm", powers, factor[keys], total, acc=None if step.is_first else total)

    @cached_property
    def _mask(self) -> tl.Value:
        """0 where the query of a column sees the key of a row; made beside the first loads."""
        token, zero = tl.arange(0, self._shape.rows), tl.zeros((1, 1), tl.float32)
        return tl.where(token[None, :] >= token[:, None], zero, MASKED)

    def _mask_of(self, step: _Step) -> tl.Value | None:
        """The mask of a step, with a row for each key."""
        mask, shape = step.flash.mask, (self._shape.rows, step.keys)
        return None if mask is None else mask.part(shape, self._masks[step.number % 3]).mT

    def _load(self, step: _Step, operand: Literal[1, 2], buffer: tl.Value) -> None:
        depth, item, out = self._shape.depth, step.flash, buffer[: step.keys]
        start = item.k if operand == 1 else item.v
        if item.pages:
            first, count = step.first // item.page_keys, step.keys // item.page_keys
            block = (item.page_keys, depth)
            pages = list(item.pages[first : first + count])
            tl.gather_async(start, pages, block, out=out.reshape(count, *block))
        else:
            strides = item.strides(operand)
            pitch = depth if strides is None else strides[0]
            tl.load_async(start + step.first * pitch, out.shape, strides, out=out)
